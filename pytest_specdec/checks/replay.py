"""Whether a seeded answer repeats itself. Floor 2."""

from __future__ import annotations

from pytest_specdec.checks.finding import Finding
from pytest_specdec.generation import RunPair


def check_replay(runs: RunPair, prompt_id: str) -> Finding | None:
    raise NotImplementedError
