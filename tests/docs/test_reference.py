"""The documentation names every check, circumstance and kind of finding that there is, and none
that there is not."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from pytest_specdec.catalogue import CHECKS
from pytest_specdec.checks.triage import Kind
from pytest_specdec.judge_distribution import DistributionKind
from pytest_specdec.workload import CIRCUMSTANCES, METRICS
from tools.reference import REFERENCE, reference

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = ("reference/checks.md", "reference/validators.md", "concepts/identity.md")
PACKAGE = ROOT / "pytest_specdec"
MODULES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
# What a kind is given to, and the place of it among the arguments.
MAKERS = {
    "Finding": None,
    "_finding": 0,
    "finding_on": 0,
    "not_honoured": 0,
    "SqlDefect": 0,
    "Unresolved": None,
}
# Kinds that are told on: those of types, of the exceptions among the makers, and of a saved report.
TYPED = {*get_args(Kind), *get_args(DistributionKind)} - {"passed", "failed"}
ELSEWHERE = {
    "triage.py: kind",
    "sql.py: defect.kind",
    "sql.py: error.kind",
    "told.py: data['kind']",
    "judge_distribution.py: 'distribution' if verdict.kind == 'failed' else verdict.kind",
}
REFUSED_BY = {"refused by {dialect}": {"refused by sqlite", "refused by duckdb"}}


def calls() -> Iterator[tuple[Path, ast.Call, ast.FunctionDef | None]]:
    """Every call of a maker, with the function that it stands in."""
    for path, tree in MODULES.items():
        inside: dict[ast.AST, ast.FunctionDef] = {}
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                inside |= dict.fromkeys(ast.walk(function), function)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in MAKERS:
                yield path, node, inside.get(node)


def kind_of(call: ast.Call) -> ast.expr | None:
    """The argument that is the kind; `None` where its default serves."""
    place = MAKERS[call.func.id]  # type: ignore[attr-defined]
    named = [each.value for each in call.keywords if each.arg == "kind"]
    return named[0] if named else None if place is None else call.args[place]


def texts(value: ast.expr, function: ast.FunctionDef | None) -> Iterator[str | None]:
    """What a kind may be; `None` for what is not written there."""
    if isinstance(value, ast.Constant):
        yield str(value.value)
    elif isinstance(value, ast.IfExp):
        yield from texts(value.body, function)
        yield from texts(value.orelse, function)
    elif isinstance(value, ast.JoinedStr):
        yield from REFUSED_BY[ast.unparse(value)[2:-1]]
    elif isinstance(value, ast.Name) and function is not None:
        if function.name in MAKERS:
            return  # its callers say
        given = [
            each.value
            for each in ast.walk(function)
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == value.id
        ]
        for each in given:
            yield from texts(each, function)
        if not given:
            yield None
    else:
        yield None


def defaults() -> Iterator[str]:
    """Kinds that are a parameter's default."""
    for tree in MODULES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name in MAKERS:
                yield from re.findall(r"kind: str='([^']+)'", ast.unparse(node))


def told() -> Iterator[tuple[str, str | None]]:
    """Where a kind is given, and what it may be."""
    yield from (("a type", kind) for kind in TYPED)
    yield from (("a default", kind) for kind in defaults())
    for path, call, function in calls():
        value = kind_of(call)
        if value is not None:
            where = f"{path.name}: {ast.unparse(value)}"
            yield from ((where, kind) for kind in texts(value, function))


TOLD = [*told()]
KINDS = {kind for _, kind in TOLD if kind is not None}
UNREAD = {where for where, kind in TOLD if kind is None}


def rows(page: str, heading: str) -> list[str]:
    """The names in the first column of every table of that heading, as often as they stand."""
    return first_cells((DOCS / page).read_text(encoding="utf-8"), heading)


def first_cells(text: str, heading: str) -> list[str]:
    names, is_in = [], False
    for line in text.splitlines():
        first = line.split("|")[1].strip() if line.startswith("|") else None
        if first is None or first == heading:
            is_in = first == heading
        elif is_in:
            names += re.findall(r"`([^`]+)`", first)
    return names


def headings(page: str) -> set[str]:
    """The names in the headings of a page."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    return {name for line in lines if line.startswith("#") for name in re.findall("`(.+?)`", line)}


def test_kinds_are_read_wherever_they_are_written() -> None:
    assert UNREAD == ELSEWHERE
    assert {
        "acceptance drifts",  # a keyword
        "too short",  # a first argument
        "answers missing",  # a choice of two
        "logprobs not finite",  # a variable
        "near tie",  # of a type
        "distribution",  # put in place of a type's
        "unknown name",  # a default
        "refused by duckdb",  # put together
    } <= KINDS


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_one_page_has_a_kind_in_its_tables(kind: str) -> None:
    pages = [page for page in PAGES if kind in rows(page, "kind")]
    assert len(pages) == 1


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_nothing_of_kinds_that_there_are_not(page: str) -> None:
    said = rows(page, "kind")
    assert set(said) <= KINDS
    assert said


def test_every_check_has_a_heading() -> None:
    assert headings("reference/checks.md") == {*CHECKS, *METRICS}
    assert set(rows("reference/checks.md", "check")) == {*CHECKS, *METRICS}


def test_every_circumstance_is_told() -> None:
    assert set(rows("reference/checks.md", "circumstance")) == {*CIRCUMSTANCES, "N-in-flight"}


@pytest.mark.parametrize(
    ("heading", "part"),
    [
        ("key of a profile", "profile_report"),
        ("key of `worth_it`", "worth_it"),
        ("key of a workload", "workload"),
    ],
)
def test_every_key_of_a_report_is_told(heading: str, part: str) -> None:
    schema = json.loads((PACKAGE / "report/report.schema.json").read_text(encoding="utf-8"))
    said = rows("guides/reports.md", heading)
    assert sorted(said) == sorted(schema["$defs"][part]["properties"])


def test_the_reference_is_up_to_date() -> None:
    assert REFERENCE.read_text(encoding="utf-8") == reference()


@pytest.mark.parametrize(
    "path", [*DOCS.rglob("*.md"), *ROOT.glob("*.md")], ids=lambda path: path.name
)
def test_links_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#]*)(#[^)]*)?\)", path.read_text(encoding="utf-8"))
    inner = [(name, anchor) for name, anchor in targets if "://" not in name]
    for name, anchor in inner:
        target = path.parent / name if name else path
        assert target.exists(), name
        if anchor:
            assert anchor.removeprefix("#") in anchors(target), f"{name}{anchor}"


def anchors(path: Path) -> set[str]:
    """Of headings, as GitHub makes them."""
    lines = path.read_text(encoding="utf-8").splitlines()
    titles = [line.lstrip("# ").lower() for line in lines if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}
