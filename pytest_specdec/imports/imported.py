"""ImportedMeasurement: one run of one engine as another tool measured it, in this project's words.

What was counted wins over what was told in rounded figures, and both must agree: a percentage read
as a share, or counts of two runs, would pass unseen otherwise. Floor 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pytest_specdec.imports.fields import Fields

# How far told figures may be from the counts: the tools round to 0.1% and to 0.01.
RATE_TOLERANCE = 0.0011
LENGTH_TOLERANCE = 0.011
POSITION_TOLERANCE = 0.0051


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """A time over the requests of a run; ITL's is over the gaps of all requests."""

    mean_ms: float | None = None
    median_ms: float | None = None
    p99_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMeasurement:
    """One run. What the tool did not tell is `None`, which is never the same as zero.

    Attributes:
        label: which run of its file, or the file's name where there is one only.
        num_drafts, num_draft_tokens, num_accepted_tokens: as in `counters`.
        acceptance_rate: accepted over draft tokens, 0 to 1.
        mean_acceptance_length: 1 + accepted / drafts.
        acceptance_rate_per_pos: share of drafts whose token at each position was accepted.
        num_accepted_tokens_per_pos: the same, counted.
        num_requests: those that succeeded.
        concurrency: requests in flight at most.
        output_tokens_per_s: of all requests together.
        ttft, tpot, itl: TPOT excludes the first token; ITL is the gap between stream chunks.
        speedup: over the same engine without speculation, or over the baseline engine that a
            session's profile names.
        notes: what a reader must know of these numbers, a sentence each.
    """

    label: str
    num_drafts: int | None = None
    num_draft_tokens: int | None = None
    num_accepted_tokens: int | None = None
    acceptance_rate: float | None = None
    mean_acceptance_length: float | None = None
    acceptance_rate_per_pos: tuple[float, ...] | None = None
    num_accepted_tokens_per_pos: tuple[int, ...] | None = None
    num_output_tokens: int | None = None
    num_requests: int | None = None
    concurrency: int | None = None
    duration_s: float | None = None
    output_tokens_per_s: float | None = None
    ttft: Latency = Latency()
    tpot: Latency = Latency()
    itl: Latency = Latency()
    speedup: float | None = None
    notes: tuple[str, ...] = ()


def counted(fields: Fields, *, label: str) -> ImportedMeasurement:
    """A measurement that holds its counts of drafts alone, out of what has this project's names."""
    per_pos = fields.numbers("num_accepted_tokens_per_pos")
    return ImportedMeasurement(
        label=label,
        num_drafts=fields.count("num_drafts"),
        num_draft_tokens=fields.count("num_draft_tokens"),
        num_accepted_tokens=fields.count("num_accepted_tokens"),
        num_accepted_tokens_per_pos=None if per_pos is None else tuple(map(int, per_pos)),
    )


def completed(told: ImportedMeasurement, place: Fields) -> ImportedMeasurement:
    """`told` with all that follows from its counts.

    Args:
        place: where it was read, for messages.

    Raises:
        ImportFileError: when it says what cannot be, or two figures disagree.
    """
    if told.num_drafts == 0 or told.num_draft_tokens == 0:
        return _nothing_drafted(told, place)
    counted_rate = _ratio(told.num_accepted_tokens, told.num_draft_tokens)
    extra_length = _ratio(told.num_accepted_tokens, told.num_drafts)
    counted_length = None if extra_length is None else 1 + extra_length
    rate = _agreed(
        place, "acceptance rate", told.acceptance_rate, counted_rate, tolerance=RATE_TOLERANCE
    )
    length = _agreed(
        place,
        "mean acceptance length",
        told.mean_acceptance_length,
        counted_length,
        tolerance=LENGTH_TOLERANCE,
    )
    rates = told.acceptance_rate_per_pos
    if told.num_accepted_tokens_per_pos and told.num_drafts:
        rates = tuple(count / told.num_drafts for count in told.num_accepted_tokens_per_pos)
    whole = replace(
        told, acceptance_rate=rate, mean_acceptance_length=length, acceptance_rate_per_pos=rates
    )
    for fact in _impossible(whole):
        raise place.error(fact, hint="is the file damaged, or of two runs?")
    return whole


def _nothing_drafted(told: ImportedMeasurement, place: Fields) -> ImportedMeasurement:
    """No rate is one of nothing, whatever stand-in the tool wrote."""
    if told.num_accepted_tokens:
        raise place.error(
            f"{told.num_accepted_tokens} tokens were accepted where nothing was drafted",
            hint="is the file damaged, or of two runs?",
        )
    return replace(
        told,
        acceptance_rate=None,
        mean_acceptance_length=None,
        acceptance_rate_per_pos=None,
        notes=(*told.notes, "nothing was drafted"),
    )


def _ratio(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None


def _agreed(
    place: Fields, name: str, told: float | None, counted: float | None, *, tolerance: float
) -> float | None:
    if told is None or counted is None:
        return told if counted is None else counted
    if abs(told - counted) > tolerance:
        raise place.error(
            f"{name} is told as {told:.4g}, and the counts make {counted:.4g}",
            hint="are they of one run, and is a percentage where it should be?",
        )
    return counted


def _impossible(whole: ImportedMeasurement) -> Sequence[str]:
    """What cannot be, a fact each; empty when all can."""
    rate, length = whole.acceptance_rate, whole.mean_acceptance_length
    rates = whole.acceptance_rate_per_pos or ()
    facts = []
    if rate is not None and rate > 1:
        facts.append(f"acceptance rate is {rate:.4g}, more than all draft tokens")
    if length is not None and length < 1:
        facts.append(f"mean acceptance length is {length:.4g}, below the 1 of plain decoding")
    if rates and max(rates) > 1:
        facts.append(f"acceptance rate at a position is {max(rates):.4g}, more than all drafts")
    if any(later > earlier for earlier, later in pairwise(rates)):
        facts.append(f"acceptance rates rise with the position: {_listed(rates)}")
    if rates and length is not None and not facts:
        facts += _unequal_sum(whole, rates, length)
    return facts


def _unequal_sum(
    whole: ImportedMeasurement, rates: Sequence[float], length: float
) -> Sequence[str]:
    """Rates of all positions sum to the accepted tokens of a draft, and others to no more."""
    excess = sum(rates) - (length - 1)
    drafts, draft_tokens = whole.num_drafts, whole.num_draft_tokens
    are_all = (
        drafts is not None and draft_tokens is not None and len(rates) * drafts >= draft_tokens
    )
    slack = POSITION_TOLERANCE * len(rates) + LENGTH_TOLERANCE
    if excess > slack or (are_all and excess < -slack):
        return [
            f"acceptance rates per position sum to {sum(rates):.4g}, but {length - 1:.4g} tokens "
            "of a draft were accepted"
        ]
    return []


def _listed(rates: Sequence[float]) -> str:
    return ", ".join(f"{rate:.3g}" for rate in rates)
