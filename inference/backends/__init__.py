"""Devices: what the transformer needs of one, and the backends that offer it."""
