"""Acceptance from the first passes to the last, over answers that are the same."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from pytest_specdec.checks.drift import check_drift
from pytest_specdec.counters import DraftCounters
from pytest_specdec.generation import Generation, Pass
from pytest_specdec.workload import Prompt
from tests.said import drafts, generation, pair, prompt, walk, workload

HIGH, LOWER, LOW, NONE = drafts(4, 4), drafts(4, 3), drafts(1, 1), drafts()
GREEDY, SAMPLED = prompt("one"), prompt("one", temperature=0.8)


def kind_of(
    *passes: Pass, drop: float = 0.05, prompts: tuple[Prompt, ...] = (GREEDY,), num_loads: int = 1
) -> str | None:
    runs = replace(pair([walk()] * len(passes), passes), num_loads=num_loads)
    found = check_drift(workload(*prompts), runs, acceptance_rate_drop=drop)
    return None if found is None else found.kind


def told(*counts: DraftCounters | None) -> list[Pass]:
    """Passes of one prompt, whose answer is always the same."""
    return [walk(generation(drafts=each)) for each in counts]


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
        walk(generation(drafts=each))
        if counted_by == "request"
        else walk(generation(), drafts=each)
        for each in counts
    ]
    assert kind_of(*passes, drop=drop) == ("acceptance drifts" if is_found else None)


def test_counts_of_two_kinds_are_not_compared() -> None:
    assert kind_of(walk(generation(drafts=HIGH)), walk(generation(), drafts=LOW)) is None


def two(first: Generation, second: Generation, engine: DraftCounters | None = None) -> Pass:
    return walk(replace(first, prompt_id="one"), replace(second, prompt_id="two"), drafts=engine)


@pytest.mark.parametrize(
    ("second", "token_ids", "is_found"),
    [
        pytest.param(prompt("two"), (5, 6), True, id="the same answer"),
        pytest.param(prompt("two"), (5, 7), False, id="another answer"),
        pytest.param(prompt("two", temperature=0.8), (5, 6), False, id="sampled"),
    ],
)
@pytest.mark.parametrize("counted_by", ["request", "engine"])
def test_only_what_is_the_same_counts(
    second: Prompt, token_ids: tuple[int, ...], is_found: bool, counted_by: str
) -> None:
    """The second prompt's drafts fall; the first one's do not."""
    if counted_by == "request":
        first = two(generation(drafts=HIGH), generation(drafts=HIGH))
        last = two(generation(drafts=HIGH), generation(token_ids=token_ids, drafts=LOW))
    else:
        first = two(generation(), generation(), HIGH)
        last = two(generation(), generation(token_ids=token_ids), LOW)
    found = kind_of(first, last, prompts=(GREEDY, second))
    assert found == ("acceptance drifts" if is_found else None)


def test_what_falls_is_seen_beside_what_is_not_the_same() -> None:
    first = two(generation(drafts=HIGH), generation(drafts=LOW))
    last = two(generation(drafts=LOW), generation(token_ids=(7,), drafts=HIGH))
    prompts = (GREEDY, prompt("two", temperature=0.8))
    assert kind_of(first, last, prompts=prompts) == "acceptance drifts"


def test_the_passes_between_are_not_asked() -> None:
    other = walk(generation(token_ids=(9,), drafts=HIGH))
    assert kind_of(*told(HIGH), other, *told(LOW)) == "acceptance drifts"


def test_an_answer_that_is_missing_counts_for_nothing() -> None:
    last = walk(generation("one", drafts=HIGH))
    first = two(generation(drafts=HIGH), generation(drafts=HIGH))
    assert kind_of(first, last, prompts=(GREEDY, prompt("two"))) is None


def drawn(rate: float, chance: random.Random) -> Pass:
    """A pass of which each draft token is accepted by chance."""
    accepted = [sum(chance.random() < rate for _ in range(4)) for _ in range(20)]
    return walk(
        generation(token_ids=[chance.randrange(90) for _ in range(9)], drafts=drafts(*accepted))
    )


@pytest.mark.parametrize("num_loads", [1, 2])
def test_chance_is_no_drift(num_loads: int) -> None:
    """At a constant rate, however few drafts there are, nothing is found of sampled prompts."""
    chance = random.Random(0)
    for _ in range(300):
        passes = [drawn(0.6, chance) for _ in range(6 * num_loads)]
        assert kind_of(*passes, prompts=(SAMPLED,), num_loads=num_loads) is None


@pytest.mark.parametrize(
    ("counts", "is_found"),
    [
        pytest.param([HIGH, HIGH, LOW] * 2, True, id="within each load"),
        pytest.param([HIGH, LOWER, LOW, HIGH, HIGH, HIGH], True, id="within one"),
        pytest.param([HIGH, HIGH, HIGH, LOW, LOW, LOW], False, id="from load to load"),
        pytest.param([HIGH, LOW, HIGH] * 2, False, id="neither"),
        pytest.param([LOW, HIGH, HIGH, HIGH, HIGH, LOW], False, id="one falls as the other rises"),
    ],
)
def test_each_load_is_a_new_engine(counts: list[DraftCounters], is_found: bool) -> None:
    """State that an engine keeps ends with it."""
    found = kind_of(*told(*counts), num_loads=2)
    assert found == ("acceptance drifts" if is_found else None)


def test_loads_of_one_pass_have_nothing_to_compare() -> None:
    assert kind_of(*told(HIGH, LOW), num_loads=2) is None


def test_the_text() -> None:
    runs = pair([walk()] * 2, told(HIGH, LOW))
    assert str(check_drift(workload(GREEDY), runs, acceptance_rate_drop=0.05)) == (
        "acceptance drifts\n"
        "  loads: 1, passes in each: 2; 1 at either end are compared\n"
        "  greedy prompts with the same answer in all of these: 1\n"
        "  first: acceptance rate 100.0% (8 of 8 draft tokens)\n"
        "  last: acceptance rate 25.0% (2 of 8 draft tokens)\n"
        "  allowed fall: 5.0% of the first rate\n"
        "hint: tokens are the same, drafts are not; look for state that the engine keeps between "
        "requests, such as the drafter's KV cache"
    )
