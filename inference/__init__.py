"""The engine: models, formats, text, backends, scheduling. Knows nothing of windows or of the app."""
