"""Acceptance from the first passes to the last."""

from __future__ import annotations

import pytest

from pytest_specdec.checks.drift import check_drift
from pytest_specdec.counters import DraftCounters
from pytest_specdec.generation import Pass
from tests.said import drafts, generation, pair, walk

HIGH, LOWER, LOW, NONE = drafts(4, 4), drafts(4, 3), drafts(1, 1), drafts()


def kind_of(*passes: Pass, drop: float = 0.05) -> str | None:
    found = check_drift(pair([walk()] * len(passes), passes), acceptance_rate_drop=drop)
    return None if found is None else found.kind


@pytest.mark.parametrize(
    ("counts", "drop", "is_found"),
    [
        ([HIGH], 0.05, False),
        ([HIGH, HIGH], 0.0, False),
        ([LOW, HIGH], 0.05, False),
        ([HIGH, LOW], 0.05, True),
        ([HIGH, LOWER], 0.05, True),
        ([HIGH, LOWER], 0.2, False),
        ([HIGH, LOW, HIGH], 0.05, False),
        ([HIGH, HIGH, HIGH, HIGH, LOW], 0.05, True),
        ([HIGH, LOW, HIGH, HIGH, HIGH, LOW], 0.05, False),
        ([HIGH, HIGH, HIGH, HIGH, HIGH, LOWER], 0.05, True),
        ([HIGH, HIGH, HIGH, HIGH, HIGH, LOWER], 0.1, False),
        ([HIGH, NONE], 0.05, True),
        ([NONE, HIGH], 0.05, False),
        ([NONE, NONE], 0.05, False),
        ([HIGH, None], 0.05, False),
        ([None, LOW], 0.05, False),
    ],
)
@pytest.mark.parametrize("counted_by", ["request", "engine"])
def test_thirds(
    counts: list[DraftCounters | None], drop: float, is_found: bool, counted_by: str
) -> None:
    passes = [
        walk(generation(drafts=each)) if counted_by == "request" else walk(drafts=each)
        for each in counts
    ]
    assert kind_of(*passes, drop=drop) == ("acceptance drifts" if is_found else None)


def test_counts_of_two_kinds_are_not_compared() -> None:
    assert kind_of(walk(generation(drafts=HIGH)), walk(drafts=LOW)) is None


def test_the_text() -> None:
    found = check_drift(
        pair([walk()] * 2, [walk(drafts=HIGH), walk(drafts=LOW)]), acceptance_rate_drop=0.05
    )
    assert str(found) == (
        "acceptance drifts\n"
        "  passes: 2; 1 at either end are compared\n"
        "  first: acceptance rate 100.0% (8 of 8 draft tokens)\n"
        "  last: acceptance rate 25.0% (2 of 8 draft tokens)\n"
        "  allowed fall: 5.0% of the first rate\n"
        "hint: the prompts are the same in every pass; look for state that the engine keeps "
        "between requests, such as the drafter's KV cache"
    )
