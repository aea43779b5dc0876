"""One running app per user, and the line over which other processes ask it."""
