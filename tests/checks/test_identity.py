"""Greedy identity: where two answers differ first, and how that reads."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_specdec.checks.identity import Evidence, divergence_finding, find_divergence
from pytest_specdec.generation import RunPair, TokenScore
from tests.said import generation, pair, walk

Ids = tuple[int, ...]


def runs_of(baseline: list[Ids], speculative: list[Ids]) -> RunPair:
    return pair(
        [walk(generation("one", ids)) for ids in baseline],
        [walk(generation("one", ids)) for ids in speculative],
    )


def score(token_id: int, text: str, logprob: float, rank: int) -> TokenScore:
    return TokenScore(
        token_id=token_id,
        text=text,
        logprob=logprob,
        rank=rank,
        argmax_token_id=5,
        argmax_text="x",
        argmax_logprob=-0.1,
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


BOTH = Evidence(context="SELECT ", candidates=(score(5, "a", -0.25, 1), score(6, "b\n", -1.5, 2)))
ENDED = Evidence(context="x", candidates=(None, score(6, "b", -1.5, 2)))


@pytest.mark.parametrize(
    ("speculative", "evidence", "facts"),
    [
        pytest.param(
            (9, 6),
            BOTH,
            (
                "after: 'SELECT '",
                "first: token 5 'a', log-probability -0.2500, rank 1",
                "second: token 6 'b\\n', log-probability -1.5000, rank 2",
                "margin: 1.2500 nats, by the baseline engine",
            ),
            id="all evidence",
        ),
        pytest.param((9, 6), None, ("first: token 5", "second: token 6"), id="no evidence"),
        pytest.param(
            (9,), None, ("first: token 5", "second: the end of the answer"), id="ended, no evidence"
        ),
        pytest.param(
            (9,),
            Evidence(context="x", candidates=(score(5, "a", -0.25, 1), None)),
            (
                "after: 'x'",
                "first: token 5 'a', log-probability -0.2500, rank 1",
                "second: the end of the answer",
            ),
            id="ended: no margin",
        ),
    ],
)
def test_finding(speculative: Ids, evidence: Evidence | None, facts: tuple[str, ...]) -> None:
    divergence = find_divergence(runs_of([(9, 5)], [speculative]), "one")
    assert divergence is not None
    finding = divergence_finding(divergence, 7, evidence)
    assert (finding.kind, finding.prompt_id) == ("divergence", "one")
    assert finding.facts == (
        "prompt on line 7 of its workload; the engines differ first at token 1 (answers of 2 and "
        f"{len(speculative)} tokens)",
        *facts,
    )
    assert (
        finding.hint
        == "greedy speculation must not change a token; a small margin points at numerics"
    )


def test_an_engine_at_odds_with_itself_points_away_from_speculation() -> None:
    divergence = find_divergence(runs_of([(1,), (2,)], [(1,), (1,)]), "one")
    assert divergence is not None
    assert divergence_finding(divergence, 1, None).hint == (
        "one engine answers the same prompt differently; look there before speculation"
    )


def test_margin() -> None:
    assert BOTH.margin_nats == 1.25
    assert ENDED.margin_nats is None
