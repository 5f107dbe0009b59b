"""What fails acceptance without anything to compare with: counters that contradict themselves, and
drafts that are accepted whole or not at all. Floor 3; pure.
"""

from __future__ import annotations

from pytest_specdec.counters import DraftCounters
from pytest_specdec.measurement import Measurement
from pytest_specdec.profile import Tolerances
from pytest_specdec.verdict import DRAFT_COUNTERS, Verdict, percent

ALL_OR_NOTHING = "accepted tokens per draft"
# All or nothing is asked of drafts of at least three tokens whose first one is neither rare nor
# certain, and called where drafts that keep 95% from position to position would hardly do so well.
MIN_POSITIONS = 3
LIVELY = (0.05, 0.9)
KEPT = 0.95
HARDLY = 1e-4


def tripped(measurement: Measurement, tolerances: Tolerances) -> Verdict | None:
    """The verdict on counts that need no stored ones to be wrong; `None` where nothing is amiss."""
    broken = _broken_laws(measurement)
    if broken:
        return Verdict(
            kind="failed",
            metric=DRAFT_COUNTERS,
            workload=measurement.workload,
            reasons=broken,
            hint="trust no number of this run: the engine's counters contradict themselves",
        )
    drafts = measurement.drafts
    if drafts is not None and is_all_or_nothing(drafts, tolerances.max_whole_drafts):
        first, *_, last = drafts.acceptance_rate_per_pos
        return Verdict(
            kind="failed",
            metric=ALL_OR_NOTHING,
            workload=measurement.workload,
            now=measurement.mean_acceptance_length,
            reasons=(
                f"all or nothing: of {drafts.num_drafts} drafts {percent(first)} were accepted at "
                f"the first position and {percent(last)} at the last",
            ),
            hint="see whether answers are replayed, or the draft sees what it should guess; where "
            "drafts are that good, raise `max_whole_drafts` of the profile",
        )
    return None


def is_all_or_nothing(drafts: DraftCounters, max_whole_drafts: float) -> bool:
    """Whether nearly every draft was accepted to its end or refused at once: of those accepted at
    the first position, more than `max_whole_drafts` were accepted at the last."""
    per_pos, (low, high) = drafts.num_accepted_tokens_per_pos, LIVELY
    if len(per_pos) < MIN_POSITIONS or not low <= drafts.acceptance_rate_per_pos[0] <= high:
        return False
    first, last = per_pos[0], per_pos[-1]
    if last <= max_whole_drafts * first:
        return False
    from scipy.special import bdtrc

    return bool(bdtrc(last - 1, first, KEPT ** (len(per_pos) - 1)) < HARDLY)


def _broken_laws(measurement: Measurement) -> tuple[str, ...]:
    of_all = () if measurement.drafts is None else measurement.drafts.broken_laws()
    of_prompts = tuple(
        f"prompt `{prompt.id}`: {law}"
        for prompt in measurement.prompts
        if prompt.drafts is not None
        for law in prompt.drafts.broken_laws()
    )
    return of_all + of_prompts
