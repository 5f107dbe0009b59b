"""Points of a profile in a session that asks whether speculation pays: which there are, what each
comes to, and what that does to its test. Floor 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from pytest_specdec.assessment import Assessment
from pytest_specdec.catalogue import IDENTICAL
from pytest_specdec.checks.finding import Finding
from pytest_specdec.errors import did_you_mean
from pytest_specdec.gains import point_gain, unmet
from pytest_specdec.known_defects import KnownDefect
from pytest_specdec.profile import Profile
from pytest_specdec.profile_gate import ProfileGate
from pytest_specdec.report.facts import WorkloadReport
from pytest_specdec.sweep import Point
from pytest_specdec.table import Place
from pytest_specdec.verdict import Outcome
from pytest_specdec.workload import Workload, read_workload
from pytest_specdec.worth_it import PointGain


def measured(profile: Profile) -> Profile:
    """The profile, with passes as its points have them."""
    return replace(profile, num_blocks=profile.worth_it.num_blocks, num_loads=1)


def points_of(gate: ProfileGate, workload: Workload) -> tuple[Point, ...]:
    """Where a workload is measured: a variant of a profile at one of the profile's points alone."""
    if not workload.has_points:
        return ()
    return workload.points if gate.base_name is None else (workload.own_point,)


def misfit(workload: Workload, config: Mapping[str, Any]) -> str | None:
    """Why a workload at a point is not for this engine; `None` where it fits.

    Args:
        config: what vLLM made of the engine's arguments, by dotted name.
    """
    point, at_once = workload.point, config.get("scheduler_config.max_num_seqs")
    if point is None:
        return None
    if at_once is not None and point.in_flight > at_once:
        return f"{point.in_flight} in flight: the engine's `max_num_seqs` is {at_once}"
    window = config.get("model_config.max_model_len")
    longest = max(each.request["max_tokens"] for each in workload.asked)
    if point.context_tokens and window is not None and point.context_tokens + longest > window:
        return (
            f"{point.context_tokens} tokens of records and {longest} of an answer: the engine's "
            f"`max_model_len` is {window}"
        )
    return None


def gain_of(gate: ProfileGate, assessment: Assessment) -> PointGain:
    """What speculation does at the point of a workload that has run."""
    workload, runs = assessment.workload, assessment.runs
    if workload.point is None:
        raise ValueError(f"`{workload.name}` is at no point")
    answers = runs.baseline.passes[0].generations
    return point_gain(
        assessment.measurement,
        workload=workload.base_name,
        point=workload.point,
        changes=gate.changes,
        num_speculative_tokens=gate.profile.num_speculative_tokens("speculative"),
        num_prompt_tokens=fmean(len(each.prompt_token_ids) for each in answers),
        is_identical=not _unexplained(gate, assessment),
        min_gain=gate.profile.worth_it.min_gain,
        costs=gate.step_costs.get(workload.name),
    )


def point_outcome(gate: ProfileGate, assessment: Assessment, gain: PointGain) -> Outcome:
    """What a point does to its test: greedy answers that differ fail it, and a gain that must be
    there and is not."""
    if unexplained := _unexplained(gate, assessment):
        return Outcome(kind="fail", message="\n\n".join(map(str, unexplained)))
    if (missing := unmet(gain, gate.profile.worth_it.must_gain)) is not None:
        return Outcome(kind="fail", message=missing)
    if explained := _explained(gate, assessment):
        return Outcome(kind="xfail", message="\n".join(dict.fromkeys(map(str, explained))))
    return Outcome(kind="pass", message="")


def point_reports(gate: ProfileGate) -> list[WorkloadReport]:
    """The points whose greedy answers differ, as workloads: of those there is more to tell."""
    return [
        WorkloadReport(
            assessment=replace(
                each,
                findings={
                    subject: found
                    for subject, found in each.findings.items()
                    if subject[0] == IDENTICAL
                },
            ),
            verdicts=gate.verdicts(each.workload),
            gated=(),
            rate=None,
            is_stored_now=False,
            known={
                subject: defect
                for subject, defect in gate.expected.findings(each).items()
                if subject[0] == IDENTICAL
            },
            disturbances=gate.judging.disturbances(each.runs),
        )
        for each in gate.assessments
        if each.workload.point is not None and _unexplained(gate, each)
    ]


def _unexplained(gate: ProfileGate, assessment: Assessment) -> list[Finding]:
    """Greedy answers that differ, and no known defect says why."""
    known = gate.expected.findings(assessment)
    return [
        found
        for subject, found in assessment.findings.items()
        if subject[0] == IDENTICAL and subject not in known
    ]


def _explained(gate: ProfileGate, assessment: Assessment) -> Iterable[KnownDefect]:
    found = gate.expected.findings(assessment)
    return [defect for subject, defect in found.items() if subject[0] == IDENTICAL]


def asked_gains(gate: ProfileGate) -> Mapping[str, Sequence[int]]:
    """Of the gains that the profile says there must be, those that selected tests are about."""
    asked = {
        (each.base_name, each.point.in_flight)
        for each in gate.planned
        if each.point is not None and gate.base_name is None
    }
    of = {
        name: [load for load in loads if (name, load) in asked]
        for name, loads in gate.profile.worth_it.must_gain.items()
    }
    return {name: loads for name, loads in of.items() if loads}


def check_must_gain(place: Place, profile: Profile, suite_folders: Iterable[Path]) -> None:
    """Refuses a gain that must be there where nothing is measured, whatever tests are selected.

    Args:
        place: of the profile's `must_gain`.

    Raises:
        ConfigError: naming file and key.
        WorkloadError: a workload that it names cannot be read.
    """
    if not profile.worth_it.must_gain:
        return
    paths = {path.stem: path for folder in suite_folders for path in folder.rglob("*.jsonl")}
    for name, loads in profile.worth_it.must_gain.items():
        here = place.at(name)
        if name not in paths:
            raise here.error("is no workload of the suites", hint=did_you_mean(name, paths))
        workload = read_workload(paths[name])
        if not workload.has_points:
            raise here.error(
                "is not measured: the workload does not gate its speedup and has no `sweep`",
                hint=f"add a `sweep` to its header: {workload.path}",
            )
        measured_at = list(dict.fromkeys(each.in_flight for each in workload.points))
        for load in loads:
            if load not in measured_at:
                known = ", ".join(map(str, measured_at))
                raise here.error(
                    f"names {load} in flight, and the workload is measured at: {known}",
                    hint=f"add it to `sweep.in_flight` in its header: {workload.path}",
                )
