"""Markdown in a text view, whole or while it streams in."""
