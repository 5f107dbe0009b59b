"""What engines said, for tests: answers, passes and runs, every part settable by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_specdec.counters import DraftCounters
from pytest_specdec.generation import Generation, Pass, Role, Run, RunPair


def generation(
    prompt_id: str = "one", token_ids: Sequence[int] = (5, 6), **facts: Any
) -> Generation:
    fields = {
        "prompt_token_ids": (1, 2),
        "text": "an answer",
        "finish_reason": "stop",
        "stop_reason": None,
        "step_tokens": (1,) * len(token_ids),
        "ttft_ms": 20.0,
        "tpot_ms": 5.0,
        "drafts": None,
        **facts,
    }
    return Generation(prompt_id=prompt_id, token_ids=tuple(token_ids), **fields)


def walk(
    *generations: Generation, drafts: DraftCounters | None = None, wall_s: float = 1.0
) -> Pass:
    return Pass(generations=generations, wall_s=wall_s, drafts=drafts)


def run(role: Role, *passes: Pass) -> Run:
    return Run(role=role, workload="code", passes=passes)


def pair(baseline: Sequence[Pass], speculative: Sequence[Pass]) -> RunPair:
    """Both engines' passes; baseline and speculative ones alternate."""
    order: tuple[Role, ...] = ("baseline", "speculative") * len(baseline)
    return RunPair(
        baseline=run("baseline", *baseline),
        speculative=run("speculative", *speculative),
        order=order,
    )
