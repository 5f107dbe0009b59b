"""Whether speculation is worth it, as Markdown. Floor 4; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_specdec.report.markdown_parts import inline, table
from pytest_specdec.report.told import Data
from pytest_specdec.report.told_worth_it import (
    COST_COLUMNS,
    Table,
    answer_text,
    cost_rows,
    points_table,
    ways_table,
)

SIGNS: Mapping[str, str] = {
    "worth it": "✅",
    "only for": "⚠️",
    "not worth it": "❌",
    "undecided": "⚠️",
}


def worth_it_blocks(worth_it: Data) -> Iterator[str]:
    """What it comes to first; then the tables that it is made of, each a block."""
    yield "#### Is speculation worth it?\n"
    unmet = [f"- ❌ unmet: {inline(each)}" for each in worth_it["unmet"]]
    answers = [
        f"- {SIGNS[each['answer']]} {inline(answer_text(each))}" for each in worth_it["answers"]
    ]
    yield from ("\n".join(lines) + "\n" for lines in (unmet, answers) if lines)
    for each in (points_table(worth_it, reasons=True), ways_table(worth_it)):
        if each.rows:
            yield _told(each)
    if rows := cost_rows(worth_it):
        yield _told(Table(titles=COST_COLUMNS, rows=rows))


def _told(told: Table) -> str:
    return table(told.titles, [[*map(inline, row)] for row in told.rows])
