"""Which version of something is installed here."""

from __future__ import annotations

import importlib.metadata


def installed_version(distribution: str = "deskinfer") -> str:
    """The version of a Python distribution, "" where it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
