"""Whether a workload exercised speculation: each way in which it may not have."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.checks.liveness import check_exercised
from pytest_specdec.counters import DraftCounters
from pytest_specdec.generation import Generation, RunPair
from pytest_specdec.workload import Prompt
from tests.said import drafts, generation, pair, prompt, walk, workload

LONG = tuple(range(20))
PARTLY = drafts(4, 1)
CHOICE = {"choice": ["yes", "no"]}


def runs_of(
    *speculative: Generation, baseline: tuple[Generation, ...] = (), engine: Any = None
) -> RunPair:
    return pair([walk(*(baseline or speculative))], [walk(*speculative, drafts=engine)])


def kind_of(prompts: tuple[Prompt, ...], runs: RunPair, *, k: int | None = 4) -> str | None:
    found = check_exercised(workload(*prompts), runs, num_speculative_tokens=k)
    return None if found is None else found.kind


@pytest.mark.parametrize(
    ("counts", "k", "kind"),
    [
        pytest.param(PARTLY, 4, None, id="some accepted, some rejected"),
        pytest.param(drafts(0, 0), 4, None, id="all rejected"),
        pytest.param(None, 4, "counts unknown", id="unknown"),
        pytest.param(drafts(), 4, "nothing drafted", id="none"),
        pytest.param(drafts(4, 4), 4, "nothing rejected", id="all accepted"),
        pytest.param(drafts(1, 0, size=1), 4, "one-token drafts", id="one token each"),
        pytest.param(drafts(1, 0, size=1), 1, None, id="one token asked"),
        pytest.param(drafts(1, 0, size=1), None, None, id="number asked unknown"),
        pytest.param(
            DraftCounters(
                num_drafts=3,
                num_draft_tokens=3,
                num_accepted_tokens=2,
                num_accepted_tokens_per_pos=(1, 1),
            ),
            4,
            None,
            id="a longer draft beside those that a grammar emptied",
        ),
    ],
)
@pytest.mark.parametrize("counted_by", ["request", "engine"])
def test_drafts(
    counts: DraftCounters | None, k: int | None, kind: str | None, counted_by: str
) -> None:
    own, engine = (counts, None) if counted_by == "request" else (None, counts)
    runs = runs_of(generation("one", LONG, drafts=own), engine=engine)
    assert kind_of((prompt(),), runs, k=k) == kind


@pytest.mark.parametrize(
    ("lengths", "is_choice", "kind"),
    [
        ((4, 4), False, None),
        ((3, 3, 30), False, "too short"),
        ((3, 5), False, None),
        ((0,), False, "too short"),
        ((3, 3, 3), True, "too short"),
        ((4,) * 4, True, None),
        ((15,), True, "too short"),
    ],
)
def test_short_answers(lengths: tuple[int, ...], is_choice: bool, kind: str | None) -> None:
    fields = {"structured_outputs": CHOICE} if is_choice else {}
    prompts = tuple(prompt(f"p{number}", **fields) for number, _ in enumerate(lengths))
    answers = [
        generation(each.id, LONG[:length] if length <= 20 else LONG * 2, drafts=PARTLY)
        for each, length in zip(prompts, lengths, strict=True)
    ]
    assert kind_of(prompts, runs_of(*answers)) == kind


@pytest.mark.parametrize("reason", ["error", "abort"])
def test_an_answer_broken_off_is_told_by_the_check_that_it_is_held_to(reason: str) -> None:
    """Whatever it drafted says nothing; where it is held to nothing, that is told here."""
    answers = [generation(name, (1,), finish_reason=reason, drafts=drafts()) for name in ("a", "b")]
    held = prompt("a", structured_outputs={"regex": "x+"})
    assert kind_of((held,), runs_of(answers[0])) is None
    free = prompt("b", structured_outputs={"grammar": "root ::= x"})
    found = check_exercised(workload(held, free), runs_of(*answers), num_speculative_tokens=4)
    assert found is not None
    assert (found.kind, found.facts) == (
        "broken off",
        (f"`b` ended after 1 tokens with `finish_reason`: {reason}",),
    )


def test_choices_beside_longer_answers_are_no_fault() -> None:
    prompts = (prompt("free"), *(prompt(f"c{i}", structured_outputs=CHOICE) for i in range(3)))
    answers = [
        generation(each.id, LONG if each.id == "free" else (1, 2), drafts=PARTLY)
        for each in prompts
    ]
    assert kind_of(prompts, runs_of(*answers)) is None


def bent(fields: dict[str, Any], plain: dict[str, Any], *, is_same: bool) -> str | None:
    prompts = (prompt("bent", **fields), prompt("plain", **plain))
    speculative = [generation(each.id, LONG, drafts=PARTLY) for each in prompts]
    baseline = (generation("bent", LONG if is_same else LONG[:9]), generation("plain", LONG))
    runs = runs_of(*speculative, baseline=baseline)
    found = check_exercised(workload(*prompts), runs, num_speculative_tokens=4)
    return None if found is None else str(found)


@pytest.mark.parametrize(
    "fields",
    [
        {"presence_penalty": 1.0},
        {"frequency_penalty": 1.0},
        {"repetition_penalty": 1.2},
        {"bad_words": ["x"]},
        {"allowed_token_ids": [5]},
        {"min_tokens": 3},
        {"ignore_eos": True},
        {"stop": "x"},
        {"stop_token_ids": [3]},
        {"stop": "x", "logprobs": 1},
    ],
    ids="+".join,
)
def test_a_field_that_changes_nothing(fields: dict[str, Any]) -> None:
    told = bent(fields, {}, is_same=True)
    assert told is not None
    assert told.startswith("no effect\n")
    assert f"`bent` with `{next(iter(fields))}` has the tokens of `plain`" in told
    assert bent(fields, {}, is_same=False) is None


@pytest.mark.parametrize(
    ("fields", "plain"),
    [
        pytest.param({}, {}, id="nothing bent"),
        pytest.param({"stop": "x"}, {"stop": "y"}, id="both bent"),
        pytest.param({"stop": "x", "max_tokens": 25}, {}, id="another length"),
        pytest.param({"stop": "x", "messages": []}, {}, id="other messages"),
        pytest.param({"stop": "x", "temperature": 1}, {"temperature": 1}, id="sampled"),
        pytest.param({"structured_outputs": {"regex": "x"}}, {}, id="a constraint"),
        pytest.param({"presence_penalty": 0}, {}, id="no presence penalty"),
        pytest.param({"frequency_penalty": 0.0}, {}, id="no frequency penalty"),
        pytest.param({"repetition_penalty": 1}, {}, id="no repetition penalty"),
        pytest.param({"min_tokens": 0}, {}, id="no least length"),
        pytest.param({"ignore_eos": False}, {}, id="the end token ends it"),
    ],
)
def test_no_twin(fields: dict[str, Any], plain: dict[str, Any]) -> None:
    assert bent(fields, plain, is_same=True) is None


def test_a_field_that_says_what_holds_anyway_is_as_none() -> None:
    """Neither is it named, nor does it keep a prompt from being a twin."""
    told = bent({"stop": "x", "min_tokens": 0}, {"ignore_eos": False}, is_same=True)
    assert told is not None
    assert "`bent` with `stop` has the tokens of `plain`" in told


def test_prompts_to_be_refused_are_not_missed() -> None:
    refused = Prompt(id="no", request={}, json_schema=None, sql=None, line=3, is_refused=True)
    assert kind_of((prompt(), refused), runs_of(generation("one", LONG, drafts=PARTLY))) is None


def test_the_text() -> None:
    runs = runs_of(generation("one", LONG, drafts=drafts(4, 4)))
    assert str(check_exercised(workload(), runs, num_speculative_tokens=4)) == (
        "nothing rejected\n"
        "  accepted draft tokens: all 8, in 2 drafts\n"
        "hint: errors show where drafts are rejected; add a prompt that is harder to guess"
    )
