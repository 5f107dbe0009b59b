"""Counts that add up, and each law broken by itself. The healthy ones are those of vLLM 0.32."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_specdec.checks.conservation import check_counts
from pytest_specdec.counters import DraftCounters, Usage
from pytest_specdec.generation import Generation, Pass
from tests.said import drafts, generation, pair, prompt, walk, workload

# 24 tokens in 6 steps with 20 accepted: the last step's draft reached 2 tokens past the end.
STEPS = (1, 5, 5, 5, 5, 3)
WHOLE = (4, 4, 4, 4, 4)


def answer(steps: tuple[int, ...] = STEPS, prompt_id: str = "one", **facts: Any) -> Generation:
    fields = {"step_tokens": steps, "finish_reason": "length", **facts}
    return generation(prompt_id, range(sum(steps)), **fields)


def usage(tokens: int, prompts: int = 2) -> Usage:
    return Usage(num_prompt_tokens=prompts, num_generation_tokens=tokens)


HEALTHY = answer(drafts=drafts(*WHOLE), usage=usage(24))
STOPPED = answer((1, 5, 5, 5, 4), finish_reason="stop", stop_reason="item, ", usage=usage(21))


def broken(walked: Pass, *, k: int | None = 4, n: int = 1, baseline: Pass | None = None) -> str:
    """The facts, one a line; empty for counts that add up."""
    plain = walk(answer((1,) * 24)) if baseline is None else baseline
    found = check_counts(
        workload(prompt("one", n=n)), pair([plain], [walked]), num_speculative_tokens=k
    )
    if found is None:
        return ""
    assert found.kind == "miscounted"
    return "\n".join(found.facts)


@pytest.mark.parametrize(
    "walked",
    [
        pytest.param(walk(HEALTHY), id="trimmed at max_tokens"),
        pytest.param(walk(HEALTHY, drafts=drafts(*WHOLE), usage=usage(24)), id="engine too"),
        pytest.param(walk(STOPPED, usage=usage(21)), id="trimmed by a stop string"),
        pytest.param(walk(STOPPED, drafts=drafts(4, 4, 4, 4)), id="engine counts a stopped one"),
        pytest.param(walk(replace(STOPPED, usage=None), usage=usage(21)), id="slack of a pass"),
        pytest.param(walk(answer()), id="nothing known"),
        pytest.param(walk(answer((1, 1, 1), drafts=drafts())), id="no drafts"),
        pytest.param(walk(answer((), drafts=drafts(), usage=usage(0))), id="no tokens"),
        pytest.param(walk(answer((1, 2, 1), drafts=drafts(1, 1))), id="a trimmed token at the end"),
        pytest.param(
            walk(replace(HEALTHY, finish_reason="abort"), usage=usage(9)),
            id="aborted: not compared",
        ),
        pytest.param(
            walk(replace(HEALTHY, drafts=None), drafts=drafts(*WHOLE, 4)), id="engine alone counts"
        ),
    ],
)
@pytest.mark.parametrize("k", [4, None])
def test_counts_that_add_up(walked: Pass, k: int | None) -> None:
    assert broken(walked, k=k) == ""


@pytest.mark.parametrize(
    ("walked", "law"),
    [
        pytest.param(
            walk(answer(drafts=replace(drafts(*WHOLE), num_draft_tokens=19))),
            ", `one`: accepted 20 of 19 draft tokens",
            id="a request's own law",
        ),
        pytest.param(
            walk(HEALTHY, drafts=replace(drafts(*WHOLE), num_accepted_tokens_per_pos=(20,))),
            "pass 1: one position accepted 20 tokens in 5 drafts",
            id="the engine's own law",
        ),
        pytest.param(
            walk(replace(HEALTHY, step_tokens=(1, 5, 5, 5, 5, 2))),
            "its steps gave 23 tokens, but it has 24",
            id="steps lost",
        ),
        pytest.param(
            walk(answer((1, 6))), "a step gave 6 tokens, more than 4 draft tokens and one", id="k"
        ),
        pytest.param(
            walk(answer(drafts=drafts(4, 4, 4, 4))),
            "24 tokens in 6 steps with 16 accepted: 2 came from nowhere",
            id="too few accepted",
        ),
        pytest.param(
            walk(answer(drafts=drafts(0, 0, 0, 0, 0))),
            "24 tokens in 6 steps with 0 accepted: 18 came from nowhere",
            id="frozen",
        ),
        pytest.param(
            walk(answer(drafts=drafts(*WHOLE, 4))),
            "24 tokens in 6 steps with 24 accepted: 6 are missing",
            id="too many accepted",
        ),
        pytest.param(
            walk(answer((1, 5, 5), drafts=drafts(4, 4, 1))),
            "11 tokens in 3 steps with 9 accepted: 1 are missing",
            id="a whole last step trimmed nothing",
        ),
        pytest.param(
            walk(replace(HEALTHY, usage=usage(25))),
            "25 generated tokens counted, but the answer has 24",
            id="a token too many counted",
        ),
        pytest.param(
            walk(replace(HEALTHY, usage=usage(24, prompts=3))),
            "3 prompt tokens counted, but the prompt has 2",
            id="prompt tokens",
        ),
        pytest.param(
            walk(replace(STOPPED, usage=usage(22))),
            "22 generated tokens counted, but the answer has 20",
            id="more than the last step can have trimmed",
        ),
        pytest.param(
            walk(replace(STOPPED, usage=usage(19))),
            "19 generated tokens counted, but the answer has 20",
            id="fewer than there are",
        ),
        pytest.param(
            walk(HEALTHY, drafts=drafts(*WHOLE, 0)),
            "`num_drafts` of the requests: 5, of the engine: 6",
            id="engine counts more drafts",
        ),
        pytest.param(
            walk(answer(), drafts=drafts(4, 4, 4, 4)),
            "steps gave 18 tokens beyond their first, but the engine accepted 16",
            id="the engine's counters frozen",
        ),
        pytest.param(
            walk(HEALTHY, usage=usage(25)), "engine: 25 generated tokens, requests: 24", id="pass"
        ),
        pytest.param(
            walk(HEALTHY, usage=usage(24, prompts=4)),
            "engine: 4 prompt tokens, requests: 2",
            id="pass's prompts",
        ),
        pytest.param(
            walk(STOPPED, usage=usage(20)),
            "engine: 20 generated tokens, requests: 21",
            id="pass against requests that know",
        ),
        pytest.param(
            walk(replace(STOPPED, usage=None), usage=usage(22)),
            "engine: 22 generated tokens, requests: 20",
            id="pass beyond its slack",
        ),
    ],
)
def test_each_law(walked: Pass, law: str) -> None:
    assert broken(walked).startswith("speculative engine, pass 1")
    assert law in broken(walked)


def test_a_baseline_that_speculates() -> None:
    told = broken(walk(HEALTHY), baseline=walk(answer()))
    assert told == (
        "baseline engine, pass 1, `one`: a step gave 5 tokens, more than 0 draft tokens and one"
    )


@pytest.mark.parametrize(
    "walked",
    [
        walk(HEALTHY, usage=usage(72), drafts=drafts(*WHOLE, *WHOLE)),
        walk(answer(drafts=drafts(*WHOLE, *WHOLE), usage=usage(48))),
    ],
)
def test_of_several_answers_one_is_known(walked: Pass) -> None:
    assert broken(walked) != ""
    assert broken(walked, n=3) == ""


def test_unknown_k_says_nothing_of_steps() -> None:
    assert broken(walk(answer((1, 9))), k=None) == ""
    assert broken(walk(answer(drafts=drafts(*WHOLE, 4))), k=None) == ""


def test_five_are_shown() -> None:
    bad = [answer(prompt_id=f"p{number}", usage=usage(30)) for number in range(7)]
    told = broken(walk(*bad)).splitlines()
    assert len(told) == 6
    assert told[-1] == "and 2 more"


def test_every_pass_is_read() -> None:
    runs = pair([walk(answer((1,)))] * 2, [walk(HEALTHY), walk(answer(usage=usage(9)))])
    found = check_counts(workload(), runs, num_speculative_tokens=4)
    assert found is not None
    assert found.facts[0].startswith("speculative engine, pass 2, `one`: ")


def test_counters_of_nothing() -> None:
    assert broken(walk(answer((1, 1)), drafts=DraftCounters())) == ""
