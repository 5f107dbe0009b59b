"""Figures as reports show them."""

from __future__ import annotations

import math

import pytest

from pytest_specdec.report.figures import decimal, scattered


def test_what_there_is_not_is_a_dash() -> None:
    assert decimal(None, 2) == "-"
    assert decimal(0.5, 3) == "0.500"


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (1.5, 1.75, "1.60 (1.50 to 1.75)"),
        (0.15, 159.0, "1.60 (0.15 to 159.00)"),
        (0.15, 6.9e46, "1.60 (0.15 or more)"),  # of a single block of passes
        (0.15, math.inf, "1.60 (0.15 or more)"),
        (0.0, math.inf, "1.60"),
        (-math.inf, math.inf, "1.60"),
        (None, None, "1.60"),
    ],
)
def test_an_interval_is_told_as_far_as_it_bounds(
    low: float | None, high: float | None, told: str
) -> None:
    assert scattered(1.6, low, high) == told


def test_digits_are_those_asked_for() -> None:
    assert scattered(1.6, 1.5, 1.75, digits=3) == "1.600 (1.500 to 1.750)"
