"""Where speculation gains: points that gain told from points that do not, in few words.

Floor 3; pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from pytest_specdec.sweep import Point

Axis = Literal["in_flight", "context_tokens", "temperature"]
AXES: tuple[Axis, ...] = ("in_flight", "context_tokens", "temperature")
# Whoever reads of several regions looks up a context first.
SPLIT_BY: tuple[Axis, ...] = ("context_tokens", "temperature", "in_flight")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """On one axis of a sweep.

    Attributes:
        kind: `up to` the last of `values`, `between` the first and the last, or `one of` them.
        values: in rising order.
    """

    axis: Axis
    kind: Literal["up to", "between", "one of"]
    values: tuple[float, ...]

    def holds(self, point: Point) -> bool:
        return self.allows(getattr(point, self.axis))

    def allows(self, value: float) -> bool:
        if self.kind == "up to":
            return value <= self.values[-1]
        if self.kind == "between":
            return self.values[0] <= value <= self.values[-1]
        return value in self.values

    def __str__(self) -> str:
        told = [f"{value:g}" for value in self.values]
        if len(self.values) == 1:
            amount = told[0]
        elif self.kind == "up to":
            amount = f"up to {told[-1]}"
        elif self.kind == "between":
            amount = f"{told[0]} to {told[-1]}"
        else:
            amount = f"{', '.join(told[:-1])} and {told[-1]}"
        return _WORDS[self.axis](self, amount)


def _context(condition: Condition, amount: str) -> str:
    if condition.kind == "up to":  # a context is always about that long
        return f"contexts up to {condition.values[-1]:g} tokens"
    return f"contexts of {amount} tokens"


_WORDS: Mapping[Axis, Callable[[Condition, str], str]] = {
    "in_flight": lambda _, amount: f"{amount} in flight",
    "context_tokens": _context,
    "temperature": lambda condition, amount: (
        f"temperature{'s' if len(condition.values) > 1 else ''} {amount}"
    ),
}


@dataclass(frozen=True, slots=True)
class Region:
    """Points for which all conditions hold, at most one for an axis, in the order of `AXES`."""

    conditions: tuple[Condition, ...]

    def holds(self, point: Point) -> bool:
        return all(condition.holds(point) for condition in self.conditions)

    def __str__(self) -> str:
        """Such as `for up to 8 in flight with contexts up to 512 tokens at temperature 0`."""
        text = ""
        for condition in self.conditions:
            others = "with" if text else "for"
            text += f" {'at' if condition.axis == 'temperature' else others} {condition}"
        return text.removeprefix(" ")


def where(gaining: Sequence[Point], losing: Sequence[Point]) -> str:
    """Such as `only for up to 8 in flight`; points that are in neither may be on either side.

    Args:
        gaining, losing: at least one each, and none in both.
    """
    return f"only {', and '.join(str(each) for each in regions(gaining, losing))}"


def regions(gaining: Sequence[Point], losing: Sequence[Point]) -> tuple[Region, ...]:
    """With every point that gains in one of them, and none that loses: one region where that will
    do, else those of each context, or other axis, by itself, alike ones together."""
    one = _region(gaining, losing)
    if one is not None:
        return (one,)
    several = [
        _split(axis, gaining, losing)
        for axis in SPLIT_BY
        if len({getattr(point, axis) for point in gaining}) > 1
    ]
    return min(several, key=len)


def _region(gaining: Sequence[Point], losing: Sequence[Point]) -> Region | None:
    """With the fewest conditions; of those the simplest."""
    choices = [list(_conditions(axis, gaining, losing)) for axis in AXES]
    narrowest = _chosen(each[-1] for each in choices)
    if any(narrowest.holds(point) for point in losing):
        return None
    combined = (_chosen(each) for each in product(*choices))
    return min(
        (region for region in combined if not any(region.holds(point) for point in losing)),
        key=_difficulty,
    )


def _chosen(conditions: Iterable[Condition | None]) -> Region:
    return Region(tuple(each for each in conditions if each is not None))


def _conditions(
    axis: Axis, gaining: Sequence[Point], losing: Sequence[Point]
) -> Iterator[Condition | None]:
    """None at all, and those that hold for all that gain, the narrowest last."""
    yield None
    values = {getattr(point, axis) for point in gaining}
    measured = values | {getattr(point, axis) for point in losing}
    if None not in measured and len(measured) > 1:
        yield from _kinds(axis, values)


def _kinds(axis: Axis, values: set[float]) -> Iterator[Condition]:
    for kind in ("up to", "between", "one of"):
        yield Condition(axis=axis, kind=kind, values=tuple(sorted(values)))


def _difficulty(region: Region) -> tuple[int, int, list[int]]:
    """The number of conditions, how simple they are, and the first axes first."""
    ranks = {"up to": 0, "between": 1, "one of": 2}
    return (
        len(region.conditions),
        sum(ranks[each.kind] for each in region.conditions),
        [AXES.index(each.axis) for each in region.conditions],
    )


def _split(axis: Axis, gaining: Sequence[Point], losing: Sequence[Point]) -> tuple[Region, ...]:
    """By the values of that axis, those with the same regions together."""
    measured = {getattr(point, axis) for point in (*gaining, *losing)}
    groups: dict[tuple[Region, ...], set[float]] = {}
    for value in sorted({getattr(point, axis) for point in gaining}):
        of_value = regions(
            [point for point in gaining if getattr(point, axis) == value],
            [point for point in losing if getattr(point, axis) == value],
        )
        groups.setdefault(of_value, set()).add(value)
    return tuple(
        _with(_only(axis, values, measured), region)
        for inner, values in groups.items()
        for region in inner
    )


def _only(axis: Axis, values: set[float], measured: set[float]) -> Condition:
    """The simplest condition that holds for these of the measured values alone."""
    return next(
        condition
        for condition in _kinds(axis, values)
        if {value for value in measured if condition.allows(value)} == values
    )


def _with(condition: Condition, region: Region) -> Region:
    together = (condition, *region.conditions)
    return Region(tuple(sorted(together, key=lambda each: AXES.index(each.axis))))
