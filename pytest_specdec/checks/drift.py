"""Whether acceptance holds from the first passes to the last: a long-running engine must not lose
it. Floor 2: imports from the floors below and its own.
"""

from __future__ import annotations

from pytest_specdec.checks.acceptance import acceptance_told, find_fall
from pytest_specdec.checks.finding import Finding
from pytest_specdec.generation import RunPair
from pytest_specdec.workload import Workload


def check_drift(
    workload: Workload, runs: RunPair, *, acceptance_rate_drop: float
) -> Finding | None:
    """The first third of each load's speculative passes against its last; `None` where a load has a
    single one. A load's engines are new, so what they keep is lost between loads.

    Args:
        acceptance_rate_drop: the fall that is allowed, as a share of the first third's rate.
    """
    length = runs.passes_per_load
    if length < 2:
        return None
    size = max(1, length // 3)
    passes = runs.speculative.passes
    loads = [passes[start : start + length] for start in range(0, len(passes), length)]
    fall = find_fall(
        workload,
        [each for load in loads for each in load[:size]],
        [each for load in loads for each in load[-size:]],
        drop=acceptance_rate_drop,
    )
    if fall is None:
        return None
    return Finding(
        kind="acceptance drifts",
        prompt_id=None,
        facts=(
            f"loads: {len(loads)}, passes in each: {length}; {size} at either end are compared",
            f"greedy prompts with the same answer in all of these: {fall.num_prompts}",
            f"first: {acceptance_told(fall.before)}",
            f"last: {acceptance_told(fall.after)}",
            f"allowed fall: {acceptance_rate_drop:.1%} of the first rate",
        ),
        hint="tokens are the same, drafts are not; look for state that the engine keeps between "
        "requests, such as the drafter's KV cache",
    )
