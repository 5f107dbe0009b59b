"""Speedup of one prompt: how much sooner its answer was whole, arrival to last token.

Beside the workload's own speedup it shows which prompts gain; nothing is gated by it. With several
requests in flight it is the time a user waits, and not a share of the throughput. Floor 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import geometric_mean

from pytest_specdec.generation import ROLES, Generation, Role, RunPair


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTimes:
    """One prompt's times on both engines.

    Attributes:
        baseline_ms, speculative_ms: geometric means over all passes.
    """

    baseline_ms: float
    speculative_ms: float

    @property
    def speedup(self) -> float:
        return self.baseline_ms / self.speculative_ms


def prompt_times(runs: RunPair, prompt_id: str) -> PromptTimes | None:
    """`None` where the answers are not equally long in all passes, since unequal work has no
    speedup, or where one has no time."""
    answers = {
        role: [each.generation(prompt_id) for each in runs.run(role).passes] for role in ROLES
    }
    if len({len(each.token_ids) for role in ROLES for each in answers[role]}) > 1:
        return None
    times: dict[Role, list[float]] = {role: [*map(_answer_ms, answers[role])] for role in ROLES}
    if any(not math.isfinite(each) or each <= 0 for role in ROLES for each in times[role]):
        return None
    return PromptTimes(
        baseline_ms=geometric_mean(times["baseline"]),
        speculative_ms=geometric_mean(times["speculative"]),
    )


def _answer_ms(answer: Generation) -> float:
    return answer.ttft_ms + (answer.tpot_ms or 0.0) * (len(answer.token_ids) - 1)
