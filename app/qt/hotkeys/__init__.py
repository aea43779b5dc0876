"""Hotkeys between settings, desktop and windows."""
