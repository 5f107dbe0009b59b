"""Whether a seeded sampled answer repeats itself from pass to pass of one engine.

The engines are not compared: sampling with speculation draws other random numbers. Floor 2:
imports from the floors below and its own.
"""

from __future__ import annotations

from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.identity import find_unrepeated
from pytest_specdec.generation import RunPair


def check_replay(runs: RunPair, prompt_id: str) -> Finding | None:
    """The first pass of either engine whose answer is not the one of its first pass."""
    found = find_unrepeated(runs, prompt_id)
    if found is None:
        return None
    first, other = (
        "the end of the answer" if token_id is None else f"token {token_id}"
        for token_id in found.token_ids
    )
    return Finding(
        kind="not repeated",
        prompt_id=prompt_id,
        facts=(
            f"{found.where} differ first at token {found.position}, with the same `seed`",
            f"first: {first}; then: {other}",
        ),
        hint="look for what draws random numbers outside the request's own `seed`",
    )
