"""Verdicts: what the gate says of one metric of one workload, and what that does to the build.

A verdict's `str` is the failure text. `judge` makes verdicts. Floor 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

VerdictKind = Literal[
    "passed", "failed", "inconclusive", "no stored baseline", "incomparable", "unmeasured"
]
ALWAYS_FAILING: frozenset[VerdictKind] = frozenset({"failed", "unmeasured"})

# How often a fall of `Verdict.smallest_drop` is found.
POWER = 0.95

# The metric of a verdict on counters that contradict themselves: no number of that run is one.
DRAFT_COUNTERS = "draft counters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One judgement, with the numbers it was made on.

    Attributes:
        metric: what was judged; of several that fell, the one furthest below its floor.
        now: the measured figure.
        low, high: one-sided bounds of `now`, where it scatters.
        low_confidence, high_confidence: of each bound by itself. Passing asks for the one, failing
            for the other: `low` above the floor passes, `high` below it fails.
        smallest_drop: the smallest fall below `stored` that a run like this one fails for, in 95 of
            100 cases or, where it is exact, in all.
        is_exact: whether nothing scatters: the answers are those that were stored.
        stored: the stored figure.
        floor: the lowest figure that passes.
        floor_origin: how the floor came about.
        reasons: what else there is to say, each a line.
        hint: what to do next.
    """

    kind: VerdictKind
    metric: str
    workload: str
    now: float | None = None
    low: float | None = None
    high: float | None = None
    low_confidence: float | None = None
    high_confidence: float | None = None
    smallest_drop: float | None = None
    is_exact: bool = False
    stored: float | None = None
    floor: float | None = None
    floor_origin: str | None = None
    reasons: tuple[str, ...] = ()
    hint: str | None = None

    @property
    def title(self) -> str:
        return f"{self.kind}: {self.metric} of `{self.workload}`"

    @property
    def head(self) -> str:
        """The title, and of a figure that fell how far: the first line of the failure text."""
        if self.kind != "failed" or self.now is None or self.floor is None:
            return self.title
        return f"{self.title}: {number(self.now)} is below {number(self.floor)}"

    @property
    def power(self) -> str:
        """The smallest fall that this run could have seen; empty where that is not known."""
        if self.smallest_drop is None:
            return ""
        sure = "always" if self.is_exact else f"{percent(POWER)} of the time"
        return f"smallest fall below stored that fails here: {percent(self.smallest_drop)}, {sure}"

    def __str__(self) -> str:
        lines = [self.head]
        if self.now is not None:
            lines.append(f"now: {number(self.now)}")
        if self.low is not None and self.high is not None:
            lines.append(f"interval: {_interval(self)}")
        if self.stored is not None:
            lines.append(f"stored: {number(self.stored)}")
        if self.floor is not None:
            lines.append(f"floor: {number(self.floor)} ({self.floor_origin})")
        lines.extend(self.reasons)
        if self.smallest_drop is not None:
            lines.append(self.power)
        if self.hint is not None:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a verdict does to its test.

    Attributes:
        kind: pytest's words: an `xfail` is a failure that was to be expected, an `xpass` a pass
            that was not, and fails.
        message: the failure text, or the reason of the skip on one line; empty for a pass.
        warning: what to warn of besides.
    """

    kind: Literal["pass", "fail", "skip", "xfail", "xpass"]
    message: str
    warning: str | None = None


def outcome(
    verdict: Verdict, *, strict: bool, inconclusive: Literal["fail", "warn"] | None = None
) -> Outcome:
    """A pass is a pass, and what failed or was not measured fails. What could not be decided fails
    a gate (`strict`) and skips elsewhere: it is never a pass.

    Args:
        inconclusive: what an `inconclusive` verdict does instead, gate or not.
    """
    chosen = inconclusive if verdict.kind == "inconclusive" else None
    if verdict.kind == "passed":
        return Outcome(kind="pass", message="")
    if verdict.kind in ALWAYS_FAILING or chosen == "fail" or (strict and chosen is None):
        return Outcome(kind="fail", message=str(verdict))
    told = (verdict.title, *verdict.reasons, verdict.hint)
    return Outcome(
        kind="skip",
        message="; ".join(part for part in told if part),
        warning=str(verdict) if chosen == "warn" else None,
    )


def number(value: float) -> str:
    """A figure as messages show it: no coarser than it is stored."""
    return f"{value:.6g}"


def percent(share: float) -> str:
    """A share as messages show it."""
    return f"{100 * share:.3g}%"


def _interval(verdict: Verdict) -> str:
    if verdict.high is None or math.isinf(verdict.high):
        return "unbounded (too few passes to show a scatter)"
    ends = f"{verdict.low:.4g} to {verdict.high:.4g}"
    if verdict.low_confidence is None or verdict.high_confidence is None:
        return ends
    sure = (f"{100 * each:.4g}%" for each in (verdict.low_confidence, verdict.high_confidence))
    return f"{ends} (confidence of each end: {', '.join(sure)})"
