"""Whether acceptance holds from the first passes to the last: a long-running engine must not lose
it. Floor 2: imports from the floors below."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_specdec.checks.finding import Finding
from pytest_specdec.counters import DraftCounters, total
from pytest_specdec.generation import Pass, RunPair


def check_drift(runs: RunPair, *, acceptance_rate_drop: float) -> Finding | None:
    """The first third of the speculative passes against the last; `None` for a single pass, or
    where passes were not counted, or not all by the same.

    Args:
        acceptance_rate_drop: the fall that is allowed, as a share of the first third's rate.
    """
    passes = runs.speculative.passes
    size = max(1, len(passes) // 3)
    if len(passes) < 2 or len({source for _, source in (each.counted for each in passes)}) > 1:
        return None
    before, after = _pooled(passes[:size]), _pooled(passes[-size:])
    if before is None or after is None or not has_fallen(before, after, acceptance_rate_drop):
        return None
    return Finding(
        kind="acceptance drifts",
        prompt_id=None,
        facts=(
            f"passes: {len(passes)}; {size} at either end are compared",
            f"first: {acceptance_told(before)}",
            f"last: {acceptance_told(after)}",
            f"allowed fall: {acceptance_rate_drop:.1%} of the first rate",
        ),
        hint="the prompts are the same in every pass; look for state that the engine keeps "
        "between requests, such as the drafter's KV cache",
    )


def has_fallen(before: DraftCounters, after: DraftCounters, drop: float) -> bool:
    """Whether the acceptance rate fell by more than `drop`, a share of what it was. Where drafts
    have ceased it did; without drafts before there is nothing to fall from."""
    was, now = before.acceptance_rate, after.acceptance_rate
    return was is not None and (now or 0.0) < was * (1 - drop)


def acceptance_told(drafts: DraftCounters) -> str:
    """The rate with its counts, in words."""
    if drafts.acceptance_rate is None:
        return "nothing drafted"
    return (
        f"acceptance rate {drafts.acceptance_rate:.1%} "
        f"({drafts.num_accepted_tokens} of {drafts.num_draft_tokens} draft tokens)"
    )


def _pooled(passes: Sequence[Pass]) -> DraftCounters | None:
    known = [drafts for drafts, _ in (each.counted for each in passes) if drafts is not None]
    return total(known) if len(known) == len(passes) else None
