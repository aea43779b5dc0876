"""The memory that a model works in: how full it is, who holds it, and when it is given back."""
