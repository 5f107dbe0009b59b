"""Greedy identity: where two answers differ first."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_specdec.checks.identity import compare, distinct_answers, find_divergence
from pytest_specdec.generation import Role, RunPair
from tests.said import generation, pair, walk

Ids = tuple[int, ...]


def runs_of(baseline: list[Ids], speculative: list[Ids]) -> RunPair:
    return pair(
        [walk(generation("one", ids)) for ids in baseline],
        [walk(generation("one", ids)) for ids in speculative],
    )


@pytest.mark.parametrize(
    ("baseline", "speculative", "found"),
    [
        pytest.param([(1, 2)], [(1, 2)], None, id="same"),
        pytest.param([()], [()], None, id="both empty"),
        pytest.param([(1, 2)], [(1, 3)], (1, (2, 3), "the engines"), id="last token"),
        pytest.param([(1, 2)], [(4, 2)], (0, (1, 4), "the engines"), id="first token"),
        pytest.param([(1, 2)], [(1,)], (1, (2, None), "the engines"), id="shorter"),
        pytest.param([(1,)], [(1, 2)], (1, (None, 2), "the engines"), id="longer"),
        pytest.param([(1,)], [()], (0, (1, None), "the engines"), id="empty"),
        pytest.param([(1, 0)], [(1,)], (1, (0, None), "the engines"), id="token 0 is a token"),
        pytest.param(
            [(1, 2), (1, 3)],
            [(1, 2), (1, 2)],
            (1, (2, 3), "the baseline engine's passes 1 and 2"),
            id="baseline's second pass",
        ),
        pytest.param(
            [(1, 2)] * 3,
            [(1, 2), (1, 2), (1, 4)],
            (1, (2, 4), "the speculative engine's passes 1 and 3"),
            id="speculative's third pass",
        ),
        pytest.param(
            [(1, 2), (1, 3)],
            [(1, 3), (1, 3)],
            (1, (2, 3), "the baseline engine's passes 1 and 2"),
            id="an engine at odds with itself is told first",
        ),
    ],
)
def test_find_divergence(
    baseline: list[Ids],
    speculative: list[Ids],
    found: tuple[int, tuple[int | None, int | None], str] | None,
) -> None:
    divergence = find_divergence(runs_of(baseline, speculative), "one")
    if found is None:
        assert divergence is None
    else:
        assert divergence is not None
        assert (divergence.position, divergence.token_ids, divergence.where) == found


def test_only_the_prompt_asked_for_is_compared() -> None:
    runs = pair(
        [walk(generation("one", (1,)), generation("two", (1,)))],
        [walk(generation("one", (1,)), generation("two", (2,)))],
    )
    assert find_divergence(runs, "one") is None
    assert find_divergence(runs, "two") is not None


@settings(deadline=None)
@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
def test_equal_up_to_the_position_and_not_there(first: list[int], second: list[int]) -> None:
    divergence = find_divergence(runs_of([tuple(first)], [tuple(second)]), "one")
    if divergence is None:
        assert first == second
    else:
        at = divergence.position
        assert first[:at] == second[:at]
        assert first[at : at + 1] != second[at : at + 1]


@pytest.mark.parametrize(
    ("baseline", "speculative", "unrepeated"),
    [
        ([(1,), (2,)], [(1,), (1,)], "baseline"),
        ([(1,), (1,)], [(1,), (2,)], "speculative"),
        ([(1,), (2,)], [(1,), (2,)], "baseline"),
        ([(1,), (1,)], [(2,), (2,)], None),
    ],
)
def test_the_engine_that_does_not_repeat_itself(
    baseline: list[Ids], speculative: list[Ids], unrepeated: Role | None
) -> None:
    divergence = find_divergence(runs_of(baseline, speculative), "one")
    assert divergence is not None
    assert divergence.unrepeated == unrepeated


@pytest.mark.parametrize(
    ("first", "second", "is_cut_short"),
    [((1, 2), (1,), True), ((1,), (1, 0), True), ((1, 0), (1, 2), False), ((), (1,), True)],
)
def test_an_answer_that_is_the_beginning_of_the_other(
    first: Ids, second: Ids, is_cut_short: bool
) -> None:
    divergence = compare(generation("one", first), generation("one", second))
    assert divergence is not None
    assert divergence.is_cut_short == is_cut_short


def test_distinct_answers_are_the_first_of_each_in_order() -> None:
    walks = [walk(generation("one", ids, text=str(at))) for at, ids in enumerate(([1], [2], [1]))]
    answers = distinct_answers(pair(walks, walks), "speculative", "one")
    assert [(each.token_ids, each.text) for each in answers] == [((1,), "0"), ((2,), "1")]
