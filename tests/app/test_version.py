"""Versions of what is installed."""

from __future__ import annotations

import importlib.metadata

from app.version import installed_version


def test_the_version_of_a_distribution() -> None:
    assert installed_version("pytest") == importlib.metadata.version("pytest")
    assert installed_version("no-such-distribution") == ""
