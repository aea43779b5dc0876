"""The home window, and the welcome of the very first start."""
