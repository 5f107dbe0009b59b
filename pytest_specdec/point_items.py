"""Test items of a session that asks whether speculation pays: one for each point of a workload.

    sql.jsonl::smollm2-draft::worth-it[in_flight=4]
    sql.jsonl::smollm2-draft@num_speculative_tokens=1::worth-it[in_flight=6]

Floor 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pytest_specdec.assessment import Assessment
from pytest_specdec.gate_item import GateItem, ItemsOfProfile, enforce
from pytest_specdec.point_gate import gain_of, misfit, point_outcome, points_of
from pytest_specdec.profile_gate import ProfileGate
from pytest_specdec.report.properties import point_properties
from pytest_specdec.sweep import Point
from pytest_specdec.workload import Workload

WORTH_IT = "worth-it"


class PointItems(ItemsOfProfile):
    """The points of one workload under one profile, or under a variant of one."""

    def collect(self) -> Iterator[pytest.Item]:
        for point in points_of(self.gate, self.workload):
            name = f"{WORTH_IT}[{point.name}]"
            # As text: pytest 9.2 reads the brackets in it, and `--lf` finds the test again.
            nodeid = f"{self.nodeid}::{name}"
            yield PointItem.from_parent(self, name=name, nodeid=nodeid, point=point)


class PointItem(GateItem):
    """One point."""

    def __init__(self, *, point: Point, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.subject = (WORTH_IT, point.name)
        self._workload = self.parent.workload.at(point)

    @property
    def workload(self) -> Workload:
        """The workload at its point."""
        return self._workload

    def assess(self, gate: ProfileGate) -> Assessment:
        if (why_not := misfit(self.workload, gate.baseline_config())) is not None:
            gate.leave_out(self.workload)
            pytest.skip(why_not)
        return gate.point_assessment(self.workload)

    def runtest(self) -> None:
        gate, gain = self.parent.gate, gain_of(self.parent.gate, self.assessment)
        self.user_properties += point_properties(gain)
        enforce(self, point_outcome(gate, self.assessment, gain))
