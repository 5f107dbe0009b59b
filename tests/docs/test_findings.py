"""Every kind of finding has a page with a real example, and the index names them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_specdec.catalogue import AGAIN, CHECKS
from pytest_specdec.checks.validity import CHECKS as VALIDITY
from pytest_specdec.kinds import KINDS
from tests.docs.other_examples import EXAMPLES as OTHER
from tests.docs.structured_examples import EXAMPLES as STRUCTURED
from tests.docs.test_reference import DOCS, PAGES, first_cells

FINDINGS = DOCS / "reference/findings"
INDEX = FINDINGS / "index.md"
EXAMPLES = {**STRUCTURED, **OTHER}
FOUND_BY = {
    kind: [check for check in KINDS if check in CHECKS and kind in KINDS[check]]
    for check in CHECKS
    for kind in KINDS[check]
}
TABLES = [INDEX, *(DOCS / page for page in PAGES)]
ROW = re.compile(r"^\| \[`([^`]+)`\]\(([^)]+)\) \| (.+?) \|", re.MULTILINE)
SECTIONS = [["Example", "Usual causes", "Next"], ["Example", "Usual causes", "Next", "Not found"]]


def slug(kind: str) -> str:
    """A page's name, without its ending."""
    return kind.lower().replace(" ", "-")


def page(kind: str) -> str:
    """The text of a kind's page."""
    return (FINDINGS / f"{slug(kind)}.md").read_text(encoding="utf-8")


def parts(text: str, level: str) -> dict[str, str]:
    """What stands under each heading of that level, by the heading; what is before the first is
    under an empty one."""
    before, *rest = re.split(rf"^{level} ", text, flags=re.MULTILINE)
    return {"": before} | {
        title: body for title, _, body in (each.partition("\n") for each in rest)
    }


def in_short(table: Path) -> dict[str, set[str]]:
    """By kind, the phrases that tables have for it: one for each check that words it anew."""
    said: dict[str, set[str]] = {}
    for kind, _, phrase in ROW.findall(table.read_text(encoding="utf-8")):
        said.setdefault(kind, set()).add(phrase)
    return said


def linked(text: str) -> list[tuple[str, str]]:
    """The names in backticks that are links, and where they lead."""
    return re.findall(r"\[`([^`]+)`\]\(([^)]+)\)", text)


def test_no_page_is_left_over() -> None:
    pages = {path.name for path in FINDINGS.iterdir()} - {INDEX.name}
    assert pages <= {f"{slug(kind)}.md" for kind in FOUND_BY}


def test_a_kind_has_one_example() -> None:
    assert STRUCTURED.keys() & OTHER.keys() == set()
    assert FOUND_BY.keys() >= EXAMPLES.keys()


@pytest.mark.parametrize("kind", FOUND_BY)
def test_a_page_says_who_finds_it(kind: str) -> None:
    title, found_by, meaning, *_ = page(kind).split("\n\n")
    assert title == f"# `{kind}`"
    assert found_by.startswith("Found by [")
    assert [name for name, _ in linked(found_by)] == FOUND_BY[kind]
    assert re.findall("`([^`]+)`", found_by) == FOUND_BY[kind]
    assert not meaning.startswith("#"), "nothing says what was seen"


@pytest.mark.parametrize("kind", FOUND_BY)
def test_a_page_says_causes_and_what_is_next(kind: str) -> None:
    sections = parts(page(kind), "##")
    assert [*sections][1:] in SECTIONS
    assert sections["Usual causes"].startswith("\n- ")
    assert sections["Next"].startswith("\n1. ")
    assert all(sections.values())


@pytest.mark.parametrize("kind", FOUND_BY)
def test_the_example_is_what_the_check_says(kind: str) -> None:
    if kind == "refused by duckdb":
        pytest.importorskip("duckdb")
    finding = EXAMPLES[kind]()
    assert finding.kind == kind
    blocks = re.findall(r"```text\n(.*?)\n```", page(kind), re.DOTALL)
    assert blocks == [str(finding)]


@pytest.mark.parametrize("check", CHECKS)
def test_the_index_has_the_kinds_of_a_check(check: str) -> None:
    sections = parts(INDEX.read_text(encoding="utf-8"), "##")
    said = first_cells(sections[f"`{check}`"], "kind")
    also: list[str] = []
    if check in VALIDITY:
        also = first_cells(sections["Any structured answer"], "kind")
    elif check == AGAIN:
        also = [kind for kind in KINDS[AGAIN] if FOUND_BY[kind] != [AGAIN]]
    assert sorted([*said, *also]) == sorted(KINDS[check])


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_a_table_links_each_kind_to_its_page(table: Path) -> None:
    text = table.read_text(encoding="utf-8")
    rows = ROW.findall(text)
    assert [kind for kind, _, _ in rows] == first_cells(text, "kind")
    for kind, link, _ in rows:
        assert (table.parent / link).resolve() == FINDINGS / f"{slug(kind)}.md"


@pytest.mark.parametrize("kind", FOUND_BY)
def test_the_index_has_the_words_of_the_reference(kind: str) -> None:
    told = [in_short(DOCS / page).get(kind) for page in PAGES]
    assert [each for each in told if each is not None] == [in_short(INDEX)[kind]]
