"""What there is to report on one profile, out of what its gate ran and judged. Floor 5."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_specdec.assessment import Assessment, Subject
from pytest_specdec.catalogue import check_names
from pytest_specdec.floors import line
from pytest_specdec.header import relative
from pytest_specdec.known_defects import KnownDefect, untested
from pytest_specdec.point_report import PointsResult, points_report, points_result
from pytest_specdec.profile_gate import ProfileGate
from pytest_specdec.report.facts import ABSENT, ProfileReport, WorkloadReport
from pytest_specdec.stored_numbers import Proposal
from pytest_specdec.verdict import Outcome
from pytest_specdec.workload import Metric, Workload

UPGRADED = ("vllm", "torch", "driver")
UPGRADED_BESIDE = "baseline_vllm"
"""Of profiles whose baseline engine has a vLLM of its own."""
BROKEN_OFF = "the session did not run to its end"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileResult:
    """What a session, or one of its workers, made of a profile.

    Attributes:
        report: without an update.
        proposal: what is to be stored; `None` where nothing is.
        unanswered: by workload, how many questions its recording could not answer.
        points: what speculation does where that was asked; `None` in other sessions.
    """

    report: ProfileReport
    proposal: Proposal | None
    unanswered: Mapping[str, int]
    points: PointsResult | None = None

    @property
    def has_run(self) -> bool:
        """Whether it was here that engines were started, or their recordings read."""
        return bool(self.report.workloads) or any(self.report.num_starts.values())

    def stored(self) -> ProfileReport:
        """Stores what is to be stored, and reports that, too."""
        if self.proposal is None:
            return self.report
        update = self.proposal.write()
        return replace(_left_out(self.report, update.refused), update=update)

    def broken_off(self) -> ProfileReport:
        """The report of a session that was to store numbers, and ended before it could."""
        names = [each.assessment.workload.name for each in self.report.workloads]
        return _left_out(self.report, dict.fromkeys(names, (BROKEN_OFF,)))


def profile_result(
    gate: ProfileGate, *, asked_for: Mapping[str, Workload], is_update: bool
) -> ProfileResult:
    """What there is to report and to store of the profile.

    Args:
        asked_for: the workloads that some test asked for, by name.
        is_update: whether numbers are to be stored.
    """
    return ProfileResult(
        report=_profile_report(gate, asked_for),
        proposal=gate.proposal() if is_update else None,
        unanswered={} if gate.recorded is None else dict(gate.recorded.unanswered),
        points=points_result(gate) if gate.options.is_worth_it else None,
    )


def told_from(report: ProfileReport, root: Path) -> ProfileReport:
    """With the paths that it tells from the project's folder, where they lie in it: it may be
    published, and compared with one of another machine."""

    # Where it begins a path: one folder's path may be the end of another one's, too.
    beginning = re.compile(rf"(?<![\w./~-]){re.escape(str(root))}/")

    def short(text: str) -> str:
        return beginning.sub("", text)

    update, worth_it = report.update, report.worth_it
    if worth_it is not None:
        worth_it = replace(
            worth_it,
            points=[replace(each, reason=short(each.reason)) for each in worth_it.points],
            answers=[replace(each, reason=short(each.reason)) for each in worth_it.answers],
            unmet=[*map(short, worth_it.unmet)],
        )
    if update is not None:
        update = replace(
            update,
            path=None if update.path is None else relative(Path(update.path), root),
            refused={name: [*map(short, why)] for name, why in update.refused.items()},
        )
    return replace(
        report,
        profile=replace(report.profile, root=Path(relative(report.profile.root, root))),
        failure=None if report.failure is None else short(report.failure),
        not_run={name: short(why) for name, why in report.not_run.items()},
        workloads=[
            replace(each, not_stored=[*map(short, each.not_stored)]) for each in report.workloads
        ],
        update=update,
        worth_it=worth_it,
        own_tests=[
            replace(each, message=None if each.message is None else short(each.message))
            for each in report.own_tests
        ],
    )


def _left_out(report: ProfileReport, refused: Mapping[str, Sequence[str]]) -> ProfileReport:
    """With the workloads whose numbers were to become the stored ones, and did not."""
    return replace(
        report,
        workloads=[
            replace(each, is_stored_now=False, not_stored=refused[name], failing=each.gated)
            if each.is_stored_now and (name := each.assessment.workload.name) in refused
            else each
            for each in report.workloads
        ],
    )


def _profile_report(gate: ProfileGate, asked_for: Mapping[str, Workload]) -> ProfileReport:
    if gate.options.is_worth_it:
        return points_report(gate, asked_for.values())
    provenances = [
        stored.provenance
        for each in gate.assessments
        if (stored := gate.stored_numbers.workload(each.workload)) is not None
    ]
    unused = gate.stored_numbers.unused(asked_for.keys())
    return ProfileReport(
        profile=gate.profile,
        hardware=gate.hardware,
        versions=gate.pair.versions,
        stored_versions={
            name: sorted({each.versions.get(name) or ABSENT for each in provenances})
            for name in (*UPGRADED, *({UPGRADED_BESIDE} & gate.pair.versions.keys()))
            if provenances
        },
        engines=gate.pair.facts,
        num_starts=gate.pair.num_starts,
        failure=None if gate.pair.failure is None else str(gate.pair.failure),
        is_changed=any(each.settings_digest != gate.profile.digest for each in provenances),
        workloads=[workload_report(gate, each) for each in gate.assessments],
        unused=unused,
        untested=untested(gate.profile.known_defects, _tests(gate, asked_for.values())),
        update=None,
        not_run=gate.not_run(asked_for.values()),
        is_unused_failing=gate.options.strict_baselines and bool(unused),
    )


def _tests(
    gate: ProfileGate, workloads: Iterable[Workload]
) -> tuple[tuple[str, str, str | None], ...]:
    """What each test of these workloads is about."""
    return tuple(
        (each.name, check, about)
        for each in workloads
        for check, about in (*check_names(each), *((metric, None) for metric in gate.gated(each)))
    )


def workload_report(gate: ProfileGate, assessment: Assessment) -> WorkloadReport:
    """All there is to report on one workload that has run."""
    workload, rate = assessment.workload, assessment.measurement
    stored = gate.stored_numbers.workload(workload)
    is_comparable = (
        stored is not None
        and stored.digest == rate.workload_digest
        and not gate.stored_numbers.hardware_differences
    )
    expected = [*_expected_outcomes(gate, assessment)]
    refusals = gate.refusals(assessment)
    return WorkloadReport(
        assessment=assessment,
        verdicts=gate.verdicts(workload),
        gated=gate.gated(workload),
        known={subject: defect for subject, defect, each in expected if each.kind == "xfail"},
        unseen=[*dict.fromkeys(defect for _, defect, each in expected if each.kind == "xpass")],
        rate=None
        if rate.acceptance_rate is None
        else line(
            "acceptance rate",
            rate.acceptance_rate,
            stored=stored.acceptance.rate if stored and is_comparable else None,
            drop=gate.profile.tolerances.acceptance_rate_drop,
        ),
        is_stored_now=gate.stored_numbers.is_stored_now(workload) and not refusals,
        not_stored=refusals,
        # Of what is not timed they disturb nothing.
        disturbances=gate.judging.disturbances(assessment.runs) if workload.gated else (),
        stored=stored if is_comparable else None,
        failing=[
            each
            for each in gate.gated(workload)
            if gate.outcome(assessment, each).kind in ("fail", "xpass")
        ],
    )


def _expected_outcomes(
    gate: ProfileGate, assessment: Assessment
) -> Iterator[tuple[Subject, KnownDefect, Outcome]]:
    """What comes of each test that a known defect is about."""
    metrics: dict[Subject, Metric] = {
        (each, None): each for each in gate.gated(assessment.workload)
    }
    for subject in (*check_names(assessment.workload), *metrics):
        defect = gate.expected.defect(assessment.workload, subject)
        if defect is None:
            continue
        if (metric := metrics.get(subject)) is not None:
            yield subject, defect, gate.outcome(assessment, metric)
        else:
            yield subject, defect, gate.outcome_of(assessment, subject)
