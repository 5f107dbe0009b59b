"""Whether an answer is what its request asked. Floor 2."""

from __future__ import annotations

from pytest_specdec.checks.finding import Finding
from pytest_specdec.generation import Generation
from pytest_specdec.workload import Prompt


def declares_anything(prompt: Prompt) -> bool:
    raise NotImplementedError


def check_honoured(
    prompt: Prompt, generation: Generation, *, max_model_len: int | None
) -> Finding | None:
    raise NotImplementedError


def judge_honoured(
    prompt: Prompt,
    *,
    baseline: Generation,
    speculative: Generation,
    max_model_len: int | None,
) -> Finding | None:
    raise NotImplementedError
