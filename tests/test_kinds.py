"""Kinds by check: those that there are, each where the documentation has it."""

from __future__ import annotations

import pytest

from pytest_specdec.catalogue import CHECKS
from pytest_specdec.kinds import KINDS
from pytest_specdec.workload import METRICS
from tests.docs.test_reference import DOCS, first_cells
from tests.docs.test_reference import KINDS as TOLD

VALIDITY = ("json", "sql", "regex", "choice")


def said(page: str, title: str) -> set[str]:
    """The kinds in the part of a page that has this heading."""
    _, _, rest = (DOCS / page).read_text(encoding="utf-8").partition(f"\n### {title}\n")
    assert rest, title
    return set(first_cells(rest.partition("\n## ")[0].partition("\n### ")[0], "kind"))


def test_every_check_has_kinds() -> None:
    assert KINDS.keys() == {*CHECKS, *METRICS}
    assert all(len({*kinds}) == len(kinds) for kinds in KINDS.values())


def test_every_kind_is_some_check_s() -> None:
    assert {kind for check in CHECKS for kind in KINDS[check]} == TOLD


@pytest.mark.parametrize("check", sorted({*CHECKS} - {"identical", "again", *VALIDITY}))
def test_a_check_has_the_kinds_of_its_heading(check: str) -> None:
    assert {*KINDS[check]} == said("reference/checks.md", f"`{check}`")


def test_identical_has_those_of_its_page() -> None:
    text = (DOCS / "concepts/identity.md").read_text(encoding="utf-8")
    assert {*KINDS["identical"]} == set(first_cells(text, "kind"))


def test_a_structured_answer_has_those_of_its_form() -> None:
    any_answer = said("reference/validators.md", "Any structured answer")
    assert {*KINDS["json"]} == any_answer | said("reference/validators.md", "JSON")
    assert {*KINDS["sql"]} == any_answer | said("reference/validators.md", "SQL")
    either = said("reference/validators.md", "Regex and choice")
    assert {*KINDS["regex"]} == any_answer | either - {"not a choice"}
    assert {*KINDS["choice"]} == any_answer | either - {"regex mismatch"}


def test_again_has_kinds_of_other_pages_too() -> None:
    own = said("reference/checks.md", "`again`")
    others = {"divergence", "baseline not repeatable"}
    valid = {kind for check in VALIDITY for kind in KINDS[check]}
    assert {*KINDS["again"]} == own | others | valid


def test_a_metric_s_are_its_verdicts_that_can_fail() -> None:
    failing = "failed, inconclusive, no stored baseline, incomparable, unmeasured"
    assert [", ".join(KINDS[metric]) for metric in METRICS] == [failing] * 2
