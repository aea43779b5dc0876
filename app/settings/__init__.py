"""What a user can set: one registry, one file, and how both are shown."""
