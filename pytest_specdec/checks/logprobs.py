"""Whether log-probabilities are there and are the baseline's. Floor 2."""

from __future__ import annotations

from pytest_specdec.checks.finding import Finding
from pytest_specdec.generation import Generation
from pytest_specdec.workload import Prompt


def judge_logprobs(
    prompt: Prompt, *, baseline: Generation, speculative: Generation, tolerance_nats: float
) -> Finding | None:
    raise NotImplementedError
