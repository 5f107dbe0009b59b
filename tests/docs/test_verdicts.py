"""Every verdict has a page with its real message, and the index names them all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import pytest

from pytest_specdec.report.facts import KNOWN, STORED, WORST_FIRST
from pytest_specdec.verdict import ALWAYS_FAILING, VerdictKind
from tests.docs.test_reference import DOCS, ROOT, first_cells
from tests.docs.verdict_examples import EXAMPLES, VERDICTS

VERDICT_PAGES = DOCS / "reference/verdicts"
INDEX = VERDICT_PAGES / "index.md"
JUDGED = get_args(VerdictKind)
TOLD = (*JUDGED, STORED)
ALL = (*TOLD, KNOWN, "unexpected pass")
HEADINGS = ["## Example", "## Usual causes", "## Next"]
OWN = {"failed": "## How to read the speedup's", "known defect": "## The entry"}
"""Headings that a page has besides, after its example."""


def page(verdict: str) -> Path:
    return VERDICT_PAGES / f"{verdict.replace(' ', '-')}.md"


def said(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def table(path: Path) -> Mapping[str, str]:
    """What the table of verdicts on a page says that the test does, by verdict."""
    rows = re.findall(r"^\| \[?`(.+?)`.*\| (.+?) \|$", said(path), re.MULTILINE)
    return {name: does for name, does in rows if name in TOLD}


def test_there_is_a_page_for_each_and_no_other() -> None:
    assert {*VERDICT_PAGES.iterdir()} == {INDEX, *map(page, ALL)}
    assert EXAMPLES.keys() == {*ALL}


@pytest.mark.parametrize("verdict", ALL)
def test_a_page_has_its_parts(verdict: str) -> None:
    title, meaning, *rest = said(page(verdict)).split("\n\n")
    assert title == f"# `{verdict}`"
    assert not meaning.startswith("#"), "nothing says what it means"
    own = [OWN[verdict]] if verdict in OWN else []
    example, *others = HEADINGS
    assert [each for each in rest if each.startswith("## ")] == [example, *own, *others]


@pytest.mark.parametrize("verdict", ALL)
def test_the_examples_are_what_is_told(verdict: str) -> None:
    blocks = re.findall(r"```text\n(.*?)\n```", said(page(verdict)), re.DOTALL)
    assert blocks == EXAMPLES[verdict]()


@pytest.mark.parametrize("verdict", VERDICTS)
def test_an_example_is_of_its_verdict_and_of_each_metric(verdict: VerdictKind) -> None:
    made = [each() for each in VERDICTS[verdict]]
    assert {each.kind for each in made} == {verdict}
    metrics = ["speedup" if each.metric == "speedup" else "acceptance" for each in made]
    assert metrics[:2] == ["acceptance", "speedup"]


@pytest.mark.parametrize("path", [INDEX, ROOT / "README.md"], ids=lambda path: path.name)
def test_the_table_says_what_a_test_does(path: Path) -> None:
    does = table(path)
    assert [*does] == [*TOLD]
    assert {kind for kind, each in does.items() if each == "fails"} == ALWAYS_FAILING
    assert {kind for kind, each in does.items() if each == "passes"} == {"passed", STORED}
    undecided = {does[kind] for kind in JUDGED if kind not in ALWAYS_FAILING | {"passed"}}
    assert undecided == {"fails in a gate, else skips"}


def test_the_index_links_every_page() -> None:
    text = said(INDEX)
    assert {*re.findall(r"\[`([^`]+)`\]\(([^)]+)\)", text)} >= {(e, page(e).name) for e in ALL}
    assert {*first_cells(text, "verdict")} == {*TOLD}


def test_the_index_has_the_order_of_the_summary() -> None:
    (order,) = re.findall(r"worst first: (.+?)\.", said(INDEX), re.DOTALL)
    assert tuple(re.findall(r"`([^`]+)`", order)) == WORST_FIRST


def test_exit_statuses_are_told_alike() -> None:
    first, second = (
        re.findall(r"^\| (\d) \| (.+) \|$", said(path), re.MULTILINE)
        for path in (INDEX, ROOT / "README.md")
    )
    assert first == second
    assert [status for status, _ in first] == ["0", "1", "2", "4"]
