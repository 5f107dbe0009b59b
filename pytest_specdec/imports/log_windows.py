"""What a line of vLLM's log says of a stretch of time, and several of them together.

A line does not say how many drafts there were, without which lengths cannot be averaged. Its
rounded figures leave few numbers possible, and mostly one. Floor 1; pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    """The sum over all windows, in tokens; lengths and rates where the drafts are sure enough."""
    drafted = [window for window in windows if window.num_draft_tokens]
    whole = ImportedMeasurement(
        label=label,
        num_draft_tokens=sum(window.num_draft_tokens for window in windows),
        num_accepted_tokens=sum(window.num_accepted_tokens for window in windows),
        notes=(f"the sum of {len(windows)} lines of the log",) if len(windows) > 1 else (),
    )
    drafts = [each for window in drafted if (each := drafts_of(window)) is not None]
    if not drafts or len(drafts) < len(drafted):
        return whole
    return _with_drafts(whole, drafted, drafts)


def _with_drafts(
    whole: ImportedMeasurement, windows: Sequence[Window], drafts: Sequence[Drafts]
) -> ImportedMeasurement:
    least, most = sum(each.least for each in drafts), sum(each.most for each in drafts)
    accepted = whole.num_accepted_tokens or 0
    low, high = 1 + accepted / most, 1 + accepted / least
    if high - low > 2 * LENGTH_ROUNDING:
        note = (
            f"the log leaves between {least} and {most} drafts possible, and so a mean acceptance "
            f"length between {low:.2f} and {high:.2f}"
        )
        return replace(whole, notes=(*whole.notes, note))
    whole = replace(
        whole,
        mean_acceptance_length=1 + accepted / ((least + most) / 2),
        acceptance_rate_per_pos=_mean_rates(windows, drafts),
    )
    if least == most and all(each.is_bounded for each in drafts):
        per_pos = _sums([each.per_pos for each in drafts])
        return replace(whole, num_drafts=least, num_accepted_tokens_per_pos=per_pos)
    note = f"the log leaves {least} or more drafts possible"
    return replace(whole, notes=(*whole.notes, note))


def _mean_rates(windows: Sequence[Window], drafts: Sequence[Drafts]) -> tuple[float, ...] | None:
    """By position, weighted by drafts; `None` where windows have different positions."""
    lengths = {len(window.acceptance_rate_per_pos) for window in windows}
    if len(lengths) != 1 or 0 in lengths:
        return None
    middles = [(each.least + each.most) / 2 for each in drafts]
    return tuple(
        sum(rate * middle for rate, middle in zip(rates, middles, strict=True)) / sum(middles)
        for rates in zip(*(window.acceptance_rate_per_pos for window in windows), strict=True)
    )


def _sums(vectors: Sequence[tuple[int, ...] | None]) -> tuple[int, ...] | None:
    known = [each for each in vectors if each is not None]
    if len(known) != len(vectors) or len({len(each) for each in known}) != 1:
        return None
    return tuple(map(sum, zip(*known, strict=True)))
