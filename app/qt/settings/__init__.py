"""The settings dialog, made out of the registry, and what its rows reach."""
