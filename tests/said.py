"""What engines were asked and said, for tests: prompts, answers, passes and runs, every part
settable by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_specdec.counters import DraftCounters, Usage
from pytest_specdec.generation import Completion, Generation, Pass, Role, Run, RunPair
from pytest_specdec.workload import Prompt, Workload


def prompt(prompt_id: str = "one", **request: Any) -> Prompt:
    """A greedy prompt, unless `temperature` is among the request's fields."""
    fields = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 24, **request}
    return Prompt(id=prompt_id, request=fields, json_schema=None, sql=None, line=2)


def workload(*prompts: Prompt) -> Workload:
    return Workload(
        name="code",
        path=Path("code.jsonl"),
        description="",
        concurrency=1,
        prompts=prompts or (prompt(),),
    )


def drafts(*accepted: int, size: int = 4) -> DraftCounters:
    """Drafts of `size` tokens, of which so many were accepted."""
    return DraftCounters(
        num_drafts=len(accepted),
        num_draft_tokens=size * len(accepted),
        num_accepted_tokens=sum(accepted),
        num_accepted_tokens_per_pos=tuple(
            sum(each > position for each in accepted) for position in range(size)
        ),
    )


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


def answer(text: str, finish_reason: str = "stop") -> Generation:
    """Of a text, whatever its tokens: what a check of validity reads."""
    return generation(token_ids=(2, 3), text=text, finish_reason=finish_reason)


def completion(token_ids: Sequence[int] = (5, 6), **facts: Any) -> Completion:
    """One of the further answers that `n` asked for."""
    fields = {"text": "another", "finish_reason": "stop", "stop_reason": None, **facts}
    return Completion(token_ids=tuple(token_ids), **fields)


def walk(
    *generations: Generation,
    drafts: DraftCounters | None = None,
    wall_s: float = 1.0,
    usage: Usage | None = None,
) -> Pass:
    return Pass(generations=generations, wall_s=wall_s, drafts=drafts, usage=usage)


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
