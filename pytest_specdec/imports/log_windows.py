"""What a line of vLLM's log says of a stretch of time, and several of them together.

A line does not say how many drafts there were, without which lengths cannot be averaged. Its
rounded figures leave few numbers possible, and mostly one. Floor 1; pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_specdec.imports.imported import ImportedMeasurement

# Half of the last digit that is printed, and a little for its own rounding.
LENGTH_ROUNDING = 0.00501
RATE_ROUNDING = 0.000501
MOST_CANDIDATES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One line."""

    num_accepted_tokens: int
    num_draft_tokens: int
    acceptance_rate: float | None
    mean_acceptance_length: float | None
    acceptance_rate_per_pos: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Drafts:
    """How many drafts a window had: a number, or bounds of it.

    Attributes:
        is_bounded: whether the figures leave no more than `most`.
        per_pos: accepted tokens by position; `None` where more than one such vector is possible.
    """

    least: int
    most: int
    is_bounded: bool = True
    per_pos: tuple[int, ...] | None = None

    @property
    def middle(self) -> float:
        return (self.least + self.most) / 2


def drafts_of(window: Window) -> Drafts | None:
    """The drafts that all figures of the line allow; `None` where they allow none, or tell none."""
    if window.mean_acceptance_length is None:
        return None
    extra = window.mean_acceptance_length - 1
    accepted, drafted = window.num_accepted_tokens, window.num_draft_tokens
    positions = len(window.acceptance_rate_per_pos) or 1
    # A draft may have no token, since those that a grammar forbids are taken off the draft tokens.
    least = max(1, math.ceil(accepted / (extra + LENGTH_ROUNDING)), math.ceil(drafted / positions))
    if extra <= LENGTH_ROUNDING:
        return Drafts(least, max(least, drafted), is_bounded=False)
    most = math.floor(accepted / (extra - LENGTH_ROUNDING))
    if most - least > MOST_CANDIDATES:
        return Drafts(least, most)
    possible = [number for number in range(least, most + 1) if _is_possible(window, number)]
    if not possible:
        return None
    only = _per_pos(window, possible[0]) if len(possible) == 1 else None
    return Drafts(possible[0], possible[-1], per_pos=only)


def _is_possible(window: Window, num_drafts: int) -> bool:
    """Whether whole numbers of tokens make the rates, and their sum the accepted tokens."""
    ranges = _ranges(window, num_drafts)
    if not ranges:
        return True
    if any(low > high for low, high in ranges):
        return False
    fewest, most = sum(low for low, _ in ranges), sum(high for _, high in ranges)
    return fewest <= window.num_accepted_tokens <= most


def _ranges(window: Window, num_drafts: int) -> list[tuple[int, int]]:
    return [
        (
            max(0, math.ceil((rate - RATE_ROUNDING) * num_drafts)),
            math.floor((rate + RATE_ROUNDING) * num_drafts),
        )
        for rate in window.acceptance_rate_per_pos
    ]


def _per_pos(window: Window, num_drafts: int) -> tuple[int, ...] | None:
    ranges = _ranges(window, num_drafts)
    if not ranges or any(low != high for low, high in ranges):
        return None
    return tuple(low for low, _ in ranges)


def together(windows: Sequence[Window], *, label: str) -> ImportedMeasurement:
    """The sum over all windows, in tokens; lengths by their drafts."""
    accepted = sum(window.num_accepted_tokens for window in windows)
    drafted = sum(window.num_draft_tokens for window in windows)
    drafts = [drafts_of(window) for window in windows if window.num_draft_tokens]
    known = [each for each in drafts if each is not None]
    notes: tuple[str, ...] = ()
    if len(windows) > 1:
        notes = (f"the sum of {len(windows)} lines of the log",)
    num_drafts = length = rates = per_pos = None
    if len(known) == len(drafts) and known:
        least, most = sum(each.least for each in known), sum(each.most for each in known)
        length = 1 + accepted / sum(each.middle for each in known)
        rates = _mean_rates([each for each in windows if each.num_draft_tokens], known)
        if not all(each.is_bounded for each in known):
            notes += ("where next to nothing was accepted, a log does not tell the drafts",)
        elif least == most:
            num_drafts = least
            per_pos = _sums([each.per_pos for each in known])
        else:
            notes += (f"rounded figures leave between {least} and {most} drafts possible",)
    return ImportedMeasurement(
        label=label,
        num_drafts=num_drafts,
        num_draft_tokens=drafted,
        num_accepted_tokens=accepted,
        mean_acceptance_length=length,
        acceptance_rate_per_pos=rates,
        num_accepted_tokens_per_pos=per_pos,
        notes=notes,
    )


def _mean_rates(windows: Sequence[Window], drafts: Sequence[Drafts]) -> tuple[float, ...] | None:
    """By position, weighted by drafts; `None` where windows have different positions."""
    lengths = {len(window.acceptance_rate_per_pos) for window in windows}
    if len(lengths) != 1 or 0 in lengths:
        return None
    whole = sum(each.middle for each in drafts)
    return tuple(
        sum(rate * each.middle for rate, each in zip(rates, drafts, strict=True)) / whole
        for rates in zip(*(window.acceptance_rate_per_pos for window in windows), strict=True)
    )


def _sums(vectors: Sequence[tuple[int, ...] | None]) -> tuple[int, ...] | None:
    known = [each for each in vectors if each is not None]
    if len(known) != len(vectors) or len({len(each) for each in known}) != 1:
        return None
    return tuple(map(sum, zip(*known, strict=True)))
