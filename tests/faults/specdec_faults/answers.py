"""Placeholder."""

from __future__ import annotations


def install() -> None:
    """Nothing yet."""
