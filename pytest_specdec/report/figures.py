"""Figures as all reports show them. Floor 4; pure."""

from __future__ import annotations

from pytest_specdec.report.facts import ABSENT

ANYTHING = 100.0  # times the figure: an upper bound from there on bounds nothing


def decimal(value: float | None, digits: int) -> str:
    """A figure, or a dash where there is none."""
    return ABSENT if value is None else f"{value:.{digits}f}"


def scattered(
    value: float | None, low: float | None, high: float | None, *, digits: int = 2
) -> str:
    """A positive figure with its interval; an interval from nothing to anywhere tells nothing."""
    told = decimal(value, digits)
    if low is None or high is None or low <= 0:
        return told
    if value is None or high >= ANYTHING * value:
        return f"{told} ({low:.{digits}f} or more)"
    return f"{told} ({low:.{digits}f} to {high:.{digits}f})"
