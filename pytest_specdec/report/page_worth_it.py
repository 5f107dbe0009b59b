"""What the page shows of whether speculation is worth it. Floor 4; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_specdec.report.charts_worth_it import (
    MAX_LINES,
    Dot,
    Line,
    LineChart,
    ratios,
    shares,
)
from pytest_specdec.report.figures import decimal
from pytest_specdec.report.told import Data
from pytest_specdec.report.told_worth_it import (
    best_text,
    break_even_text,
    cost_rows,
    own_points,
    place_text,
    points_table,
    ways,
    ways_table,
)

KINDS = {"worth it": "good", "only for": "warn", "not worth it": "bad", "undecided": "warn"}
AXES = {
    "in_flight": "requests in flight",
    "context_tokens": "context tokens",
    "temperature": "temperature",
}
Group = tuple[str, Sequence[Data]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One chart with its words.

    Attributes:
        told: its figures in words, for who does not see it.
    """

    title: str
    axis: str
    key: str
    told: str
    chart: LineChart


def worth_it_view(worth_it: Data, id_: str) -> Mapping[str, Any]:
    """Its section of the page."""
    return {
        "id": id_,
        "answers": [
            {
                "kind": KINDS[each["answer"]],
                "workload": each["workload"],
                "text": each["text"],
                "rest": [*filter(None, [each["reason"], break_even_text(each), best_text(each)])],
            }
            for each in worth_it["answers"]
        ],
        "plots": [*_plots(worth_it)],
        "points": points_table(worth_it, reasons=True),
        "ways": ways_table(worth_it),
        "cost_rows": cost_rows(worth_it),
    }


def _plots(worth_it: Data) -> Iterator[Plot]:
    """Those that have a line of two figures at least."""
    points = own_points(worth_it)
    gains, slower = "with its 95% interval", "above the dashed line speculation is slower"
    faster = f"{gains}; below the dashed line speculation is slower"
    crossings = _crossings(worth_it)
    loads = [
        (name, group, crossings.get((group[0]["workload"], group[0]["point"]["context_tokens"])))
        for name, group in _groups(points, "in_flight")
    ]
    lines = [_line(name, group, "in_flight", "gain", at) for name, group, at in loads]
    broken = "; hollow ring on it: break-even" if any(each.crossing for each in lines) else ""
    yield from _ratios("Gain by requests in flight", "in_flight", faster + broken, lines)
    for title, figure, key in (
        ("Gain by context", "gain", faster),
        ("Time to first token by context, speculative over baseline", "ttft_ratio", slower),
        ("Time per output token by context, speculative over baseline", "tpot_ratio", slower),
    ):
        groups = _groups(points, "context_tokens")
        lines = [_line(name, group, "context_tokens", figure) for name, group in groups]
        yield from _ratios(title, "context_tokens", key, lines)
    groups = _groups(points, "temperature")
    lines = [_line(name, group, "temperature", "acceptance_rate") for name, group in groups]
    for chunk in _chunks(lines):
        yield Plot(
            title="Acceptance rate by temperature",
            axis=AXES["temperature"],
            key="share of draft tokens that are accepted",
            told=_told(chunk, 3),
            chart=shares(chunk),
        )
    yield from _drafts(worth_it)


def _drafts(worth_it: Data) -> Iterator[Plot]:
    """A chart for each workload of which several lengths of drafts were tried, all else equal."""
    groups: dict[str, list[Data]] = {}
    for each in ways(worth_it):
        if each["num_speculative_tokens"] and not each["changes"].keys() - {
            "num_speculative_tokens"
        }:
            name = f"{each['workload']}[{place_text(each['point'])}]"
            groups.setdefault(name, []).append(each)
    for name, group in groups.items():
        lines = [
            Line(name=told, dots=_dots(group, lambda each: each["num_speculative_tokens"], figure))
            for told, figure in (
                ("measured", "gain"),
                ("expected", "expected"),
                ("expected, with the measured cost of verification", "expected_verified"),
            )
        ]
        if len(lines[0].dots) > 1:
            known = [each for each in lines if each.dots]
            yield Plot(
                title=f"Gain by num_speculative_tokens, {name}",
                axis="num_speculative_tokens",
                key="below the dashed line speculation is slower than none",
                told=_told(known, 2),
                chart=ratios(known, is_doubling=False),
            )


def _ratios(title: str, axis: str, key: str, lines: Sequence[Line]) -> Iterator[Plot]:
    for chunk in _chunks(lines):
        yield Plot(
            title=title,
            axis=AXES[axis],
            key=key,
            told=_told(chunk, 2),
            chart=ratios(chunk, is_doubling=True),
        )


def _groups(points: Sequence[Data], axis: str) -> list[Group]:
    """Points that differ along one axis alone, with a name that tells them from the others."""
    others = [each for each in AXES if each != axis]
    groups: dict[tuple[Any, ...], list[Data]] = {}
    for each in points:
        if each["point"][axis] is not None:
            place = (each["workload"], *(each["point"][other] for other in others))
            groups.setdefault(place, []).append(each)
    several = [each for each in groups.items() if len(each[1]) > 1]
    named = Counter(place[0] for place, _ in several)
    return [
        (place[0] if named[place[0]] == 1 else _name(place, others), group)
        for place, group in several
    ]


def _name(place: Sequence[Any], others: Sequence[str]) -> str:
    words = {"in_flight": "in flight", "context_tokens": "context tokens"}
    told = [
        f"{words.get(key, key)} {value:g}"
        for key, value in zip(others, place[1:], strict=True)
        if value is not None
    ]
    return ", ".join([place[0], *told])


def _line(
    name: str, points: Sequence[Data], axis: str, figure: str, crossing: float | None = None
) -> Line:
    return Line(
        name=name, dots=_dots(points, lambda each: each["point"][axis], figure), crossing=crossing
    )


def _dots(points: Sequence[Data], x: Callable[[Data], float], figure: str) -> list[Dot]:
    has_interval = figure == "gain"
    dots = [
        Dot(
            x=x(each),
            y=each[figure],
            # An interval from nothing to anywhere tells nothing.
            low=(each["low"] or None) if has_interval else None,
            high=each["high"] if has_interval else None,
        )
        for each in points
        if each[figure] is not None
    ]
    return sorted(dots, key=lambda dot: dot.x)


def _chunks(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """As many as one chart can tell apart; a line of one figure is none."""
    drawn = [each for each in lines if len({dot.x for dot in each.dots}) > 1]
    return (drawn[at : at + MAX_LINES] for at in range(0, len(drawn), MAX_LINES))


def _crossings(worth_it: Data) -> Mapping[tuple[str, int | None], float]:
    return {
        (answer["workload"], each["context_tokens"]): each["value"]
        for answer in worth_it["answers"]
        for each in answer["break_even"]
        if each["value"] is not None
    }


def _told(lines: Sequence[Line], digits: int) -> str:
    return "; ".join(
        f"{line.name}: "
        + ", ".join(f"{decimal(each.y, digits)} at {each.x:g}" for each in line.dots)
        for line in lines
    )
