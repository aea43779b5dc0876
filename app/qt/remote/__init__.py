"""The dialog of a remote engine, and the sign that text leaves the machine."""
