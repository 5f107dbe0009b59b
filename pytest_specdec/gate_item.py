"""What all test items of a workload share: engines run in `setup`, outcomes become pytest's.

Floor 5.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.assessment import Assessment, Subject
from pytest_specdec.errors import InconclusiveWarning
from pytest_specdec.fixtures import message_only
from pytest_specdec.profile_gate import ProfileGate
from pytest_specdec.report.properties import item_properties
from pytest_specdec.session import GateSession
from pytest_specdec.verdict import Outcome
from pytest_specdec.workload import Workload


class ItemsOfProfile(pytest.Collector):
    """One workload under one profile."""

    def __init__(self, *, gate: ProfileGate, workload: Workload, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.gate = gate
        self.workload = workload


class GateItem(pytest.Item):
    """One test of a workload under a profile."""

    parent: ItemsOfProfile
    subject: Subject

    @property
    def profile_name(self) -> str:
        """The profile whose engines it needs."""
        return self.parent.gate.profile.name

    @property
    def workload(self) -> Workload:
        """The workload it asks for."""
        return self.parent.workload

    def assess(self, gate: ProfileGate) -> Assessment:
        """What its workload's runs say; runs it, if nothing has."""
        return gate.assessment(self.workload)

    def setup(self) -> None:
        session = GateSession.of(self.config)
        try:
            session.skip_without_engines()
            # pytest asks no item how to show what went wrong in its setup.
            with message_only():
                self.assessment = self.assess(session.profile(self.profile_name))
        finally:
            # What cannot run is told too. The version is known once the engines have started.
            self.user_properties += item_properties(
                profile=self.profile_name,
                workload=self.workload.name,
                subject=self.subject,
                vllm_version=self.parent.gate.pair.versions.get("vllm"),
            )

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.workload.name}: {self.name} ({self.profile_name})"


def enforce(item: pytest.Item, outcome: Outcome) -> None:
    """Turns an outcome into pytest's."""
    if outcome.warning is not None:
        warn(item, InconclusiveWarning(outcome.warning))
    if outcome.kind in ("fail", "xpass"):
        pytest.fail(outcome.message, pytrace=False)
    if outcome.kind == "skip":
        pytest.skip(outcome.message)
    if outcome.kind == "xfail":
        pytest.xfail(outcome.message)


def warn(item: pytest.Item, warning: Warning) -> None:
    """Warns; a warning that is made an error fails the test with the same text."""
    try:
        # Line 0, as pytest would quote any other: the workload's JSON tells nobody more.
        warnings.warn_explicit(warning, None, filename=str(item.path), lineno=0)
    except type(warning) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
