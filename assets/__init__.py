"""Data files: actions, icons, samples, translations."""
