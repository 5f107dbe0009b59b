"""Draft counters: arithmetic, the figures made of them, and the laws they must keep."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_specdec.counters import DraftCounters, total

NOTHING = DraftCounters()
SOME = DraftCounters(
    num_drafts=10,
    num_draft_tokens=40,
    num_accepted_tokens=15,
    num_accepted_tokens_per_pos=(8, 5, 2, 0),
)


@st.composite
def lawful(draw: st.DrawFn) -> DraftCounters:
    """Counts as an engine makes them: each draft accepts some of its first tokens."""
    drafts = draw(
        st.lists(st.integers(1, 5).flatmap(lambda k: st.tuples(st.just(k), st.integers(0, k))))
    )
    longest = max((drafted for drafted, _ in drafts), default=0)
    return DraftCounters(
        num_drafts=len(drafts),
        num_draft_tokens=sum(drafted for drafted, _ in drafts),
        num_accepted_tokens=sum(accepted for _, accepted in drafts),
        num_accepted_tokens_per_pos=tuple(
            sum(accepted > position for _, accepted in drafts) for position in range(longest)
        ),
    )


@pytest.mark.parametrize(
    ("counters", "rate", "length", "per_pos"),
    [
        pytest.param(NOTHING, None, None, (), id="nothing drafted"),
        pytest.param(SOME, 0.375, 2.5, (0.8, 0.5, 0.2, 0.0), id="some"),
        pytest.param(
            DraftCounters(num_drafts=2, num_draft_tokens=8),
            0.0,
            1.0,
            (),
            id="drafted, nothing accepted",
        ),
        pytest.param(
            DraftCounters(
                num_drafts=3,
                num_draft_tokens=3,
                num_accepted_tokens=3,
                num_accepted_tokens_per_pos=(3,),
            ),
            1.0,
            2.0,
            (1.0,),
            id="all accepted",
        ),
    ],
)
def test_figures(
    counters: DraftCounters, rate: float | None, length: float | None, per_pos: tuple[float, ...]
) -> None:
    assert counters.acceptance_rate == rate
    assert counters.mean_acceptance_length == length
    assert counters.acceptance_rate_per_pos == per_pos


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({}, ()),
        (
            {"num_draft_tokens": 14},
            ("accepted 15 of 14 draft tokens",),
        ),
        (
            {"num_accepted_tokens": 16},
            ("accepted tokens per position sum to 15, but 16 were accepted",),
        ),
        (
            {"num_accepted_tokens_per_pos": (5, 8, 2, 0)},
            ("accepted tokens per position rise: [5, 8, 2, 0]",),
        ),
        ({"num_drafts": 7}, ("one position accepted 8 tokens in 7 drafts",)),
        (
            {"num_drafts": 0, "num_draft_tokens": 0},
            ("accepted 15 of 0 draft tokens", "one position accepted 8 tokens in 0 drafts"),
        ),
    ],
)
def test_broken_laws(changes: dict[str, int], sentences: tuple[str, ...]) -> None:
    assert replace(SOME, **changes).broken_laws() == sentences  # type: ignore[arg-type]


def test_nothing_breaks_no_law() -> None:
    assert NOTHING.broken_laws() == ()


def test_vectors_of_unequal_length_add_by_position() -> None:
    short = DraftCounters(
        num_drafts=1, num_draft_tokens=1, num_accepted_tokens=1, num_accepted_tokens_per_pos=(1,)
    )
    assert (SOME + short).num_accepted_tokens_per_pos == (9, 5, 2, 0)
    assert (short + SOME).num_accepted_tokens_per_pos == (9, 5, 2, 0)
    assert (SOME + short - SOME).num_accepted_tokens_per_pos == (1, 0, 0, 0)


@settings(deadline=None)
@given(st.lists(lawful()))
def test_sums_of_lawful_counts_are_lawful(counted: list[DraftCounters]) -> None:
    summed = total(counted)
    assert summed.broken_laws() == ()
    assert summed.num_drafts == sum(each.num_drafts for each in counted)
    assert summed.num_draft_tokens == sum(each.num_draft_tokens for each in counted)
    assert summed.num_accepted_tokens == sum(each.num_accepted_tokens for each in counted)


@settings(deadline=None)
@given(lawful(), lawful())
def test_growth_since_a_snapshot(before: DraftCounters, growth: DraftCounters) -> None:
    grown = (before + growth) - before
    assert replace(grown, num_accepted_tokens_per_pos=()) == replace(
        growth, num_accepted_tokens_per_pos=()
    )
    per_pos = growth.num_accepted_tokens_per_pos
    assert grown.num_accepted_tokens_per_pos[: len(per_pos)] == per_pos
    assert not any(grown.num_accepted_tokens_per_pos[len(per_pos) :])
