"""Acceptance of the same answers at two times: where tokens are the same, so are the drafts due.

Chance has no part in it: sampled prompts, and greedy ones whose answer is another, are left out.
Floor 2: imports from the floors below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_specdec.counters import DraftCounters, total
from pytest_specdec.generation import DraftsSource, Pass
from pytest_specdec.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """An acceptance rate that fell further than it may.

    Attributes:
        num_prompts: greedy prompts that have the same answer in all passes.
        before, after: counts of those.
    """

    num_prompts: int
    before: DraftCounters
    after: DraftCounters


def find_fall(
    workload: Workload, before: Sequence[Pass], after: Sequence[Pass], *, drop: float
) -> Fall | None:
    """The fall from some passes to others, over the greedy prompts whose tokens are the same in all
    of them. `None` without such prompts, or where not all counts are known and of one source.

    Args:
        drop: the fall that is allowed, as a share of the rate before.
    """
    prompt_ids = _same(workload, (*before, *after))
    counted = [_counted(each, prompt_ids) for each in (*before, *after)]
    known = [drafts for drafts, _ in counted if drafts is not None]
    if not prompt_ids or len(known) < len(counted) or len({source for _, source in counted}) > 1:
        return None
    fall = Fall(
        num_prompts=len(prompt_ids),
        before=total(known[: len(before)]),
        after=total(known[len(before) :]),
    )
    was, now = fall.before.acceptance_rate, fall.after.acceptance_rate
    # Where drafts have ceased it fell; without drafts before there is nothing to fall from.
    return fall if was is not None and (now or 0.0) < was * (1 - drop) else None


def acceptance_told(drafts: DraftCounters) -> str:
    """The rate with its counts, in words."""
    if drafts.acceptance_rate is None:
        return "nothing drafted"
    return (
        f"acceptance rate {drafts.acceptance_rate:.1%} "
        f"({drafts.num_accepted_tokens} of {drafts.num_draft_tokens} draft tokens)"
    )


def _same(workload: Workload, passes: Sequence[Pass]) -> set[str]:
    greedy = {prompt.id for prompt in workload.asked if prompt.is_greedy}
    first, *others = (
        {each.prompt_id: each.token_ids for each in walk.generations} for walk in passes
    )
    return {
        name
        for name, token_ids in first.items()
        if name in greedy and all(each.get(name) == token_ids for each in others)
    }


def _counted(walk: Pass, prompt_ids: set[str]) -> tuple[DraftCounters | None, DraftsSource | None]:
    """The engine's own counts tell prompts not apart, so they serve where all are among these."""
    chosen = tuple(each for each in walk.generations if each.prompt_id in prompt_ids)
    is_all = len(chosen) == len(walk.generations)
    return replace(walk, generations=chosen, drafts=walk.drafts if is_all else None).counted
