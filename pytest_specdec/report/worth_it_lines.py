"""Whether speculation is worth it, for a terminal of `WIDTH` columns. Floor 4; pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, zip_longest

from pytest_specdec.report.excerpt import visible
from pytest_specdec.report.facts import ABSENT
from pytest_specdec.report.json_file import pure
from pytest_specdec.report.json_worth_it import worth_it_data
from pytest_specdec.report.told_worth_it import (
    Table,
    answer_text,
    cost_rows,
    points_table,
    remarks,
    ways_table,
)
from pytest_specdec.worth_it import WorthIt

WIDTH = 100
GAP = "  "
MAX_CELL = 24  # but for the first, which has a line of its own where it is long
# Long words that would make a column wider than its figures; a title is broken at spaces.
SHORT: Mapping[str, str] = {"acceptance": "accept- ance", "temperature": "temp."}


def worth_it_lines(worth_it: WorthIt) -> list[str]:
    """The tables, then what they come to: a line for each workload, the costs, unmet gains."""
    data = pure(worth_it_data(worth_it))
    tables = [points_table(data, reasons=False), ways_table(data)]
    told = [
        *remarks(data),
        *map(answer_text, data["answers"]),
        *_costs(data),
        *(f"unmet: {each}" for each in data["unmet"]),
    ]
    return [
        *(line for table in tables if table.rows for line in (*_table(table), "")),
        *(line for each in told for line in _wrapped(each)),
    ]


def _costs(data: Mapping[str, object]) -> Iterator[str]:
    for title, first, second, difference in cost_rows(data):
        if first == difference == ABSENT:
            yield f"cost: {title}: {second}"
        else:
            beside = "" if difference == ABSENT else f": {difference}"
            yield f"cost: {title}: {second}, baseline {first}{beside}"


def _table(table: Table) -> Iterator[str]:
    """With the workloads' names on lines of their own where the columns need their room."""
    rows = [[*map(_line, row)] for row in table.rows]
    titles, *told = _aligned(table.titles, rows)
    if max(len(line) for lines in (titles, *told) for line in lines) <= WIDTH:
        yield from (line for lines in (titles, *told) for line in lines)
        return
    titles, *told = _aligned(table.titles[1:], [row[1:] for row in rows])
    yield from (GAP + line for line in titles)
    for name, group in groupby(zip(rows, told, strict=True), key=lambda each: each[0][0]):
        yield name if len(name) <= WIDTH else f"{name[: WIDTH - 1]}…"
        yield from (GAP + line for _, lines in group for line in lines)


def _aligned(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The lines of the titles, then those of each row: columns as wide as their widest cell, and
    titles broken to fit them."""
    broken = [[[first], *map(_broken, rest)] for first, *rest in rows]
    head = []
    for at, title in enumerate(titles):
        words = SHORT.get(title, title)
        told = [line for row in broken for line in row[at]]
        head.append(textwrap.wrap(words, max(map(len, [*told, *words.split()]))))
    blocks = [[*zip_longest(*row, fillvalue="")] for row in (head, *broken)]
    widths = [max(len(line[at]) for block in blocks for line in block) for at in range(len(titles))]
    return [[GAP.join(map(str.ljust, line, widths)).rstrip() for line in block] for block in blocks]


def _broken(cell: str) -> list[str]:
    return textwrap.wrap(cell, MAX_CELL, break_on_hyphens=False)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(_line(text), WIDTH, subsequent_indent="    ", break_on_hyphens=False)


def _line(text: str) -> str:
    """One line, in which what cannot be seen is seen."""
    return " ".join(visible(text).split())
