"""The window of models."""
