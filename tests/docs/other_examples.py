"""Findings of the kinds that are of no structured answer."""

from __future__ import annotations

from collections.abc import Callable

from pytest_specdec.checks.finding import Finding

EXAMPLES: dict[str, Callable[[], Finding]] = {}
