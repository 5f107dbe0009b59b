"""Whether speculation is worth it, as rows of words: what all reports tell of that part of a
`report.json`. Floor 4; pure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_specdec.report.facts import ABSENT
from pytest_specdec.report.figures import decimal, scattered
from pytest_specdec.report.told import Data
from pytest_specdec.sweep import Point

MAX_CHANGES = 80  # characters of what differs from the profile
COST_COLUMNS = ("what it takes", "baseline", "speculative", "difference")
Column = tuple[str, Callable[[Data], str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Titles, and rows of as many cells."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]


def points_table(worth_it: Data, *, reasons: bool) -> Table:
    """A row a point of the profile itself; a column that no point uses is left out.

    Args:
        reasons: whether each point's reason has a column.
    """
    columns: list[Column] = [
        ("workload", lambda each: each["workload"]),
        *_PLACES,
        _ACCEPTANCE,
        ("tokens a step", lambda each: decimal(each["tokens_per_step_ratio"], 2)),
        ("step cost", lambda each: decimal(each["step_cost_ratio"], 2)),
        _GAIN,
        ("TTFT", lambda each: decimal(each["ttft_ratio"], 2)),
        ("TPOT", lambda each: decimal(each["tpot_ratio"], 2)),
        ("answer", lambda each: each["answer"]),
    ]
    if reasons:
        columns.append(("why", lambda each: each["reason"] or ABSENT))
    return _table(columns, own_points(worth_it))


def ways_table(worth_it: Data) -> Table:
    """A row for each way to speculate that was tried, the profile's own beside them, with the gain
    that was to be expected and how far the measured one is from it."""
    best = {each["workload"]: each["best"] for each in worth_it["answers"]}
    columns: list[Column] = [
        ("workload", lambda each: f"{each['workload']}[{place_text(each['point'])}]"),
        ("tokens a draft", lambda each: _whole(each["num_speculative_tokens"])),
        ("other changes", lambda each: other_changes(each["changes"]) or ABSENT),
        _ACCEPTANCE,
        _GAIN,
        ("expected", lambda each: _against(each, "expected")),
        ("expected, verified", lambda each: _against(each, "expected_verified")),
        ("best", lambda each: "yes" if each["changes"] == best.get(each["workload"]) else ABSENT),
    ]
    return _table(columns, ways(worth_it))


def own_points(worth_it: Data) -> list[Data]:
    """Those of the profile itself."""
    return [each for each in worth_it["points"] if not each["changes"]]


def ways(worth_it: Data) -> list[Data]:
    """Points that are to be compared by how they speculate, a workload's together, the shorter
    drafts first: those of other ways, the profile's own at the same point, and those of which a
    gain was to be expected."""
    points = worth_it["points"]
    tried = [(each["workload"], each["point"]) for each in points if each["changes"]]
    compared = [
        each
        for each in points
        if (each["workload"], each["point"]) in tried
        or each["expected"] is not None
        or each["expected_verified"] is not None
    ]
    places: list[tuple[str, Data]] = []
    for each in compared:
        if (place := (each["workload"], each["point"])) not in places:
            places.append(place)
    names = list(dict.fromkeys(name for name, _ in places))
    return sorted(
        compared,
        key=lambda each: (
            names.index(each["workload"]),
            places.index((each["workload"], each["point"])),
            each["num_speculative_tokens"] or 0,
        ),
    )


def other_changes(changes: Data) -> str:
    """What differs from the profile, but for how many tokens a draft has."""
    told = ", ".join(
        f"{key} {value if isinstance(value, str) else json.dumps(value)}"
        for key, value in changes.items()
        if key != "num_speculative_tokens"
    )
    return told if len(told) <= MAX_CHANGES else f"{told[: MAX_CHANGES - 1]}…"


def gain_text(point: Data) -> str:
    """The gain with its interval; one without an upper end says so."""
    high = math.inf if point["high"] is None else point["high"]
    return scattered(point["gain"], point["low"], high)


def answer_text(answer: Data) -> str:
    """The plain answer, why, where it breaks even, and what gained most: one line."""
    facts = [answer["reason"], break_even_text(answer), best_text(answer)]
    return "; ".join([f"{answer['workload']}: {answer['text']}", *filter(None, facts)])


def break_even_text(answer: Data) -> str:
    """At how many requests in flight, for each context; empty where none was asked for."""
    told = [
        each["text"]
        if each["context_tokens"] is None
        else f"{each['text']} behind {each['context_tokens']} tokens"
        for each in sorted(answer["break_even"], key=lambda each: each["context_tokens"] or 0)
    ]
    return f"breaks even at requests in flight: {', '.join(told)}" if told else ""


def best_text(answer: Data) -> str:
    """Which way to speculate gained most; empty where one was tried alone."""
    if answer["best"] is None:
        return ""
    return f"best: {', '.join(_changed(answer['best'])) or 'as the profile has it'}"


def _changed(changes: Data) -> list[str]:
    tokens = changes.get("num_speculative_tokens")
    counted = "" if tokens is None else f"num_speculative_tokens {tokens}"
    return [*filter(None, [counted, other_changes(changes)])]


def remarks(worth_it: Data) -> Iterator[str]:
    """Points that have no gain to tell, and why."""
    for each in worth_it["points"]:
        if each["answer"] in ("not identical", "unmeasured"):
            name = f"{each['workload']}[{place_text(each['point'])}]"
            told = [name, *_changed(each["changes"]), each["answer"], each["reason"]]
            yield ": ".join(filter(None, told))


def place_text(point: Data) -> str:
    """As in the names of tests."""
    return Point(**point).name


def cost_rows(worth_it: Data) -> list[tuple[str, ...]]:
    """What speculation takes, beside what the baseline engine takes, a row each of `COST_COLUMNS`;
    what could not be had of either is left out."""
    cost = worth_it["cost"]
    if cost is None:
        return []
    rows: list[tuple[str, ...]] = []
    if cost["draft_weights_bytes"] is not None:
        rows.append(("draft model's weights", ABSENT, size(cost["draft_weights_bytes"]), ABSENT))
    for key, (title, unit) in _COSTS.items():
        first, second = (cost[role][key] for role in ("baseline", "speculative"))
        if first is not None or second is not None:
            told = (ABSENT if each is None else unit(each) for each in (first, second))
            rows.append((title, *told, _difference(first, second, unit)))
    return rows


def size(num_bytes: float) -> str:
    """In the unit that leaves up to four digits before the point."""
    if num_bytes < 1000 * 2**20:
        return f"{num_bytes / 2**20:.1f} MiB"
    return f"{num_bytes / 2**30:.2f} GiB"


def _difference(first: float | None, second: float | None, unit: Callable[[float], str]) -> str:
    if first is None or second is None:
        return ABSENT
    sign = "-" if second < first else "+"
    share = f" ({second / first - 1:+.1%})" if first > 0 else ""
    return f"{sign}{unit(abs(second - first))}{share}"


def _against(point: Data, key: str) -> str:
    """A gain that was to be expected, and how far the measured one is from it."""
    expected, gain = point[key], point["gain"]
    if expected is None or gain is None or expected <= 0:
        return decimal(expected, 2)
    return f"{expected:.2f} ({gain / expected - 1:+.0%})"


def _table(columns: Sequence[Column], points: Sequence[Data]) -> Table:
    cells = {title: [cell(each) for each in points] for title, cell in columns}
    used = [
        title
        for title, told in cells.items()
        if title in ("workload", "answer") or any(each != ABSENT for each in told)
    ]
    rows = [*zip(*(cells[title] for title in used), strict=True)]
    return Table(titles=used, rows=rows)


def _whole(value: int | None) -> str:
    return ABSENT if value is None else str(value)


def _place(key: str) -> Callable[[Data], str]:
    def cell(point: Data) -> str:
        value = point["point"][key]
        return ABSENT if value is None else f"{value:g}" if isinstance(value, float) else str(value)

    return cell


_PLACES: Sequence[Column] = (
    ("context tokens", _place("context_tokens")),
    ("in flight", _place("in_flight")),
    ("temperature", _place("temperature")),
)
_ACCEPTANCE: Column = ("acceptance", lambda each: decimal(each["acceptance_rate"], 3))
_GAIN: Column = ("gain", gain_text)
_COSTS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "weights_bytes": ("weights held", size),
    "kv_cache_blocks": ("KV cache blocks", lambda value: f"{value:,}"),
    "kv_cache_tokens": ("KV cache tokens", lambda value: f"{value:,}"),
    "peak_memory_bytes": ("peak memory", size),
    "load_s": ("start-up", lambda value: f"{value:.1f} s"),
}
