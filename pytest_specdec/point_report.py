"""What a session that asks whether speculation pays has to report of one profile, or of a variant
of one, before `point_answers` makes one answer of them. Floor 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_specdec.point_gate import asked_gains, gain_of, misfit, point_reports
from pytest_specdec.profile_gate import ProfileGate
from pytest_specdec.report.facts import ProfileReport
from pytest_specdec.workload import Workload
from pytest_specdec.worth_it import Cost, PointGain


@dataclass(frozen=True, slots=True, kw_only=True)
class PointsResult:
    """What one profile, or one variant of it, has for the answer.

    Attributes:
        base_name: the profile that this is a variant of; `None` for one of `specdec.toml`.
        points: in the order they were measured.
        cost: `None` where it cannot be had.
        must_gain: of the gains that there must be, those that selected tests are about.
    """

    base_name: str | None
    points: Sequence[PointGain]
    cost: Cost | None
    must_gain: Mapping[str, Sequence[int]]


def points_result(gate: ProfileGate) -> PointsResult:
    """What has run of a profile or a variant, as this session or worker ran it."""
    return PointsResult(
        base_name=gate.base_name,
        points=[gain_of(gate, each) for each in gate.assessments if each.workload.point],
        cost=gate.pair.cost(),
        must_gain=asked_gains(gate),
    )


def points_report(gate: ProfileGate, asked_for: Iterable[Workload]) -> ProfileReport:
    """The report of a profile or a variant, before the answer: nothing stored is in it."""
    facts = gate.pair.facts.get("baseline")
    fitting = [each for each in asked_for if facts is None or not misfit(each, facts.config)]
    return ProfileReport(
        profile=gate.profile,
        hardware=gate.hardware,
        versions=gate.pair.versions,
        stored_versions={},
        engines=gate.pair.facts,
        num_starts=gate.pair.num_starts,
        failure=None if gate.pair.failure is None else str(gate.pair.failure),
        is_changed=False,
        workloads=point_reports(gate),
        unused=(),
        untested=(),
        update=None,
        not_run=gate.not_run(fitting),
    )
