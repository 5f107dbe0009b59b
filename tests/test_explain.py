from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_specdec.explain import Move, speedup_moves
from tests.measured import speedup, stored_speedup

factors = st.floats(0.2, 5)


@pytest.mark.parametrize(
    ("moved", "culprit"),
    [
        ({"tokens_per_step": 1.5}, "fewer tokens per step: less is accepted, or drafts come less"),
        ({"speculative_step_ms": 13.0}, "the step cost ratio: the speculative step costs more"),
        ({"baseline_step_ms": 7.0}, "the step cost ratio: the baseline engine got faster"),
        # Both got faster, as on a better machine; one of them less so.
        (
            {"baseline_step_ms": 5.0, "speculative_step_ms": 6.0},
            "the step cost ratio: the baseline engine got faster than speculation did (speedup",
        ),
        ({"baseline_step_ms": 13.0}, None),
        ({}, None),
    ],
)
def test_what_lowered_the_speedup(moved: Mapping[str, float], culprit: str | None) -> None:
    sentences = speedup_moves(speedup(2.0, **moved), stored_speedup(2.0))
    named = [each for each in sentences if each.startswith("what lowered it most: ")]
    assert [each.startswith(f"what lowered it most: {culprit}") for each in named] == (
        [] if culprit is None else [True]
    )


@given(factors, factors, factors)
def test_the_factors_make_up_the_whole(tokens: float, baseline: float, speculative: float) -> None:
    """log speedup = log(tokens per step) - log(step cost ratio), and so of what each moved."""
    parts = (
        Move("tokens per step", 2.0, 2.0 * tokens, sign=1).effect,
        Move("step cost ratio", 1.0, speculative / baseline, sign=-1).effect,
    )
    whole = math.log(2.0 * tokens * baseline / speculative) - math.log(2.0)
    assert sum(parts) == pytest.approx(whole, abs=1e-9)


def test_a_move_is_told_with_what_it_did() -> None:
    assert str(Move("tokens per step", 2.0, 1.5, sign=1)) == (
        "tokens per step: 2 stored, 1.5 now (speedup 25% lower by it)"
    )
    assert str(Move("step cost ratio", 2.0, 1.6, sign=-1)) == (
        "step cost ratio: 2 stored, 1.6 now (speedup 25% higher by it)"
    )
