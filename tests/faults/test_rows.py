"""The table itself: every check is needed, and every fault of the kit is tried."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_specdec.catalogue import CHECKS
from pytest_specdec.workload import CIRCUMSTANCES, METRICS
from tests.faults.rows import DEFECTS, ERROR, FAULTS, HARMLESS, ROWS, TESTED, Row
from tests.faults.workloads import WORKLOADS, written

KIT = Path(__file__).parent / "src" / "specdec_faults"
# What no engine here can be brought to.
NOT_HERE = {"after-sleep"}
TESTED_FAULTS = [row for row in TESTED if row in FAULTS]
HARMLESS_SWITCHES = {"better-drafts", "other-log-lines", "reordered-batches", "slower-target"}


def failing(row: Row) -> frozenset[str]:
    """Names of checks without what they are about."""
    return frozenset(re.sub(r"\[.*\]", "", each) for each in row.fails)


@pytest.mark.parametrize("check", [*CHECKS, *METRICS, ERROR])
def test_without_this_check_a_fault_goes_unseen(check: str) -> None:
    """Some fault is found by this check and by no other, in `make test` already."""
    found = {row.name for row in TESTED_FAULTS if failing(row)}
    without = {row.name for row in TESTED_FAULTS if failing(row) - {check}}
    assert found - without


@pytest.mark.parametrize("circumstance", [*CIRCUMSTANCES, "8-in-flight"])
def test_each_circumstance_shows_a_fault_that_nothing_else_shows(circumstance: str) -> None:
    if circumstance in NOT_HERE:
        return
    assert any(row.fails == {f"again[{circumstance}]"} for row in TESTED_FAULTS)


def test_what_a_spare_row_shows_another_shows() -> None:
    shown = {(row.fails, row.is_timed) for row in TESTED}
    assert {(row.fails, row.is_timed) for row in ROWS} == shown


def test_no_row_is_tested_on_a_workload_that_might_fail_by_itself() -> None:
    """With a fault on it, that fault is to blame: without one, or mended, nothing fails there."""
    silent = {row.workload for row in TESTED if row in HARMLESS}
    assert {row.workload for row in TESTED_FAULTS} <= silent


def test_every_fault_of_the_kit_is_tried() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in KIT.glob("*.py"))
    tried = {row.fault.removeprefix("mended+") for row in ROWS} | {
        row.recorded_with for row in ROWS
    }
    named = set(re.findall(r'"([a-z]+(?:-[a-z]+)+|crash|hang)"', code))
    assert named - tried == set()
    assert tried - named == {"", "mended"}


def test_harmless_changes_are_all_tried() -> None:
    assert {row.fault for row in HARMLESS} >= HARMLESS_SWITCHES
    assert all(not row.fails for row in HARMLESS)
    assert all(row.fails for row in (*FAULTS, *DEFECTS))


def test_rows_have_names_of_their_own() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_a_row_asks_for_can_be_asked(row: Row, tmp_path: Path) -> None:
    workload = written(tmp_path, row.workload, gated=row.gated, again=row.again)
    assert (workload.gated, workload.again) == (row.gated, row.again)


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_a_workload_is_one_and_is_used(name: str, tmp_path: Path) -> None:
    assert written(tmp_path, name).prompts
    assert name in {row.workload for row in ROWS}
