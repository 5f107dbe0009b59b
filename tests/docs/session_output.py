"""What a session is shown to print: tables are as `report/summary` lines them up, and every other
line is one that pytest or this package writes. The figures are whatever they were.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import get_args

from pytest_specdec.report.summary import COLUMNS
from pytest_specdec.verdict import VerdictKind
from pytest_specdec.workload import METRICS
from tests.docs.blocks import ROOT, assert_none

WORDS = {*get_args(VerdictKind), "stored", "known defect", "error"}
FIGURES = (*METRICS, "acceptance rate", "mean acceptance length", "drafts per output token")
NAMED = rf"({'|'.join((*FIGURES, 'tokens per step'))}) \S+ -> \S+"
# Lines whose words are names and numbers alone.
BY_FORM = (
    r"\.\.\.",
    rf"({'|'.join(get_args(VerdictKind))}): ({'|'.join(METRICS)}) of `[\w.-]+`",
    r"[a-z ]+: [\d.]+ [a-z ]+, [\d.]+ [a-z ]+ \(speedup ([\d.]+% (high|low)er|unmoved) by it\)",
    r"=+ .+ =+",  # pytest's own, and the title of our part
    rf" *[\w.-]+: {NAMED}(, {NAMED})*",
    r"\S+\.jsonl( [.xFEs]+)?( +\[ *\d+%\])?",  # pytest's progress
)
PREFIX = "specdec: "
LETTERS = (
    8  # of its own, that a text must have to tell a line by, if it does not begin with a label
)


def check_output(lines: Sequence[str]) -> None:
    """Fails for the first line that no session prints so."""
    at = 0
    while at < len(lines):
        if cells(lines[at]):
            end = next((row for row in range(at, len(lines)) if not cells(lines[row])), len(lines))
            check_table(lines[at:end])
            at = end
        else:
            assert is_written(lines[at]), f"no session prints this line: {lines[at]}"
            at += 1


def cells(line: str) -> list[str]:
    """Of one row of the table; none where it is no row."""
    found = re.split(r" {2,}", line)
    return found if len(found) == len(COLUMNS) else []


def check_table(lines: Sequence[str]) -> None:
    """The heading, the verdicts and the places of all cells."""
    table = [cells(line) for line in lines]
    assert tuple(table[0]) == COLUMNS, f"columns are {', '.join(COLUMNS)}"
    assert_none({row[-1] for row in table[1:]} - WORDS, "no such verdict")
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    aligned = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
    assert_none((line for line in lines if line not in aligned), "not lined up as the columns are")


def is_written(line: str) -> bool:
    """Whether a text of the package makes this line, whatever names stand before it."""
    if any(re.fullmatch(form, line) for form in BY_FORM):
        return True
    return any(re.fullmatch(rf"({PREFIX})?([\w.-]+: )*{each}", line) for each in written())


@cache
def written() -> tuple[str, ...]:
    """Patterns of the texts in the package's code."""
    trees = (
        ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "pytest_specdec").rglob("*.py"))
    )
    return tuple({each for tree in trees for node in ast.walk(tree) for each in _patterns(node)})


def _patterns(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.JoinedStr):
        parts = node.values
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [node.left, node.right]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        parts = [node]
    else:
        return
    texts = [str(each.value) if isinstance(each, ast.Constant) else None for each in parts]
    own = " ".join(text for text in texts if text).removeprefix(PREFIX)
    if sum(map(str.isalpha, own)) >= LETTERS or re.match(r"[a-z ]+: ", own):
        yield "".join(".+" if text is None else re.escape(text) for text in texts)
