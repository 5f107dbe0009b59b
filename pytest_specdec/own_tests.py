"""Tests of a user's own that use our fixtures: what each is about, and what came of it.

It goes by reports alone, so that it is the same under pytest-xdist. Floor 5.
"""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.fixtures import profile_name
from pytest_specdec.marked import marked_path
from pytest_specdec.pytest_reports import properties_of, reason_of
from pytest_specdec.report.facts import OwnOutcome, OwnTest
from pytest_specdec.report.property_names import CHECK, PROFILE, WORKLOAD

MAX_CHARS = 500


def tell_about(item: pytest.Item) -> None:
    """Notes a test's profile and workload as properties; tests of ours tell theirs themselves."""
    if hasattr(item, "profile_name"):
        return
    path = marked_path(item)
    told = {PROFILE: profile_name(item), WORKLOAD: None if path is None else path.stem}
    item.user_properties += [(name, each) for name, each in told.items() if each is not None]


class OwnTests:
    """A pytest plugin: hears of every test, and keeps those of a user's own."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, OwnTest]] = {}

    def of(self, profile: str) -> tuple[OwnTest, ...]:
        """Those of one profile, in the order they ran."""
        return tuple(self._of.get(profile, {}).values())

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = properties_of(report)
        # One that could not be set up has no call, and one that could not be cleaned up fails.
        if PROFILE not in told or CHECK in told or (report.when != "call" and report.passed):
            return
        self._of.setdefault(told[PROFILE], {})[report.nodeid] = OwnTest(
            node_id=report.nodeid,
            workload=told.get(WORKLOAD),
            outcome=_outcome(report),
            message=_first_line(report),
        )


def _outcome(report: Any) -> OwnOutcome:
    is_expected = hasattr(report, "wasxfail")
    if report.passed:
        return "xpassed" if is_expected else "passed"
    if report.skipped:
        return "xfailed" if is_expected else "skipped"
    return "failed" if report.when == "call" else "error"


def _first_line(report: Any) -> str | None:
    if report.passed:
        return None
    line = reason_of(report).partition("\n")[0]
    return line if len(line) <= MAX_CHARS else f"{line[:MAX_CHARS]}..."
