"""The windows: everything that needs Qt."""
