"""One profile's share of the gate: its engines, stored baseline and assessments. Floor 5.

Each thing is done once however many tests ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_specdec.assessment import Assessment, Subject, assess
from pytest_specdec.baseline_update import refusals, stored_workload
from pytest_specdec.catalogue import Limits, workload_checks
from pytest_specdec.checks.evidence import IdentityRules
from pytest_specdec.engines.asked import Asked
from pytest_specdec.engines.protocol import Pair
from pytest_specdec.engines.recorded import RecordedPair
from pytest_specdec.engines.step_costs import StepCosts
from pytest_specdec.errors import FATAL, EngineError, SpecdecError
from pytest_specdec.expected import Expected
from pytest_specdec.generation import ROLES, RunPair
from pytest_specdec.hardware import Hardware
from pytest_specdec.measurement import measure
from pytest_specdec.options import Options
from pytest_specdec.profile import Profile
from pytest_specdec.profile_verdicts import ProfileVerdicts
from pytest_specdec.recorder import Recorder
from pytest_specdec.report.facts import NOT_REACHED
from pytest_specdec.stored_baseline import StoredBaseline
from pytest_specdec.stored_numbers import Proposal, StoredNumbers
from pytest_specdec.verdict import Outcome, Verdict, outcome
from pytest_specdec.witness import Witness
from pytest_specdec.workload import Metric, Workload


@dataclass
class ProfileGate:
    """One profile's share of the gate.

    Attributes:
        pair: both engines, or their recording.
        recorder: writes what they say; `None` where nobody asks for that.
        base_name: the profile that this one is a variant of; `None` for one of `specdec.toml`.
        changes: of that profile's `speculative_config`; empty for one of `specdec.toml`.
        step_costs: by the name of a workload at a point, what was measured beside its passes.
    """

    profile: Profile
    hardware: Hardware
    stored: StoredBaseline | None
    pair: Pair
    options: Options
    recorder: Recorder | None = None
    base_name: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    step_costs: dict[str, StepCosts] = field(default_factory=dict)
    _assessments: dict[str, Assessment] = field(default_factory=dict)
    _refused: dict[str, str] = field(default_factory=dict)
    _left_out: set[str] = field(default_factory=set)
    _untold: dict[str, SpecdecError] = field(default_factory=dict)
    _planned: dict[str, Workload] = field(default_factory=dict)
    _num_profiles: int = 1
    _verdicts: dict[str, dict[Metric, Verdict]] = field(default_factory=dict)

    @property
    def stored_numbers(self) -> StoredNumbers:
        """The profile's stored numbers, and which of them the session writes."""
        return StoredNumbers(
            profile=self.profile, hardware=self.hardware, stored=self.stored, options=self.options
        )

    @property
    def judging(self) -> ProfileVerdicts:
        """How the profile's figures are judged."""
        return ProfileVerdicts(
            profile=self.profile,
            stored_numbers=self.stored_numbers,
            planned=self._planned,
            num_profiles=self._num_profiles,
        )

    def plan(self, workloads: Iterable[Workload], *, num_profiles: int) -> None:
        """Names the workloads that will be asked for, and how many profiles the session has: all
        that shares the allowance for false alarms."""
        self._planned = {each.name: each for each in workloads}
        self._num_profiles = num_profiles
        # Without stored numbers and floors nothing is decided early: each point has equal passes.
        is_decided = None if self.options.is_worth_it else self.judging.is_decided
        self.pair.plan(self._planned.values(), is_decided=is_decided)

    @property
    def planned(self) -> tuple[Workload, ...]:
        """The workloads that selected tests ask for."""
        return tuple(self._planned.values())

    def measure_planned(self) -> None:
        """Runs what has not run: verdicts are made on all gated figures together. A workload that
        cannot be run is told where its own tests ask for it."""
        for each in self._planned.values():
            try:
                self.assessment(each)
            except SpecdecError as error:
                self._untold[each.name] = error

    def verdicts(self, workload: Workload) -> Mapping[Metric, Verdict]:
        """On one workload, in the light of all others that have run."""
        if self._verdicts.keys() != self._assessments.keys():
            self._verdicts = self.judging.judged(self._assessments, self.stored)
        return self._verdicts[workload.name]

    def assessment(self, workload: Workload) -> Assessment:
        """Runs the workload if it has not run, and assesses it; once.

        Raises:
            SpecdecError: what kept the engines from running it.
        """
        if (error := self._untold.pop(workload.name, None)) is not None:
            raise error
        if workload.name not in self._assessments:
            runs = self._runs(workload)
            measurement = measure(workload, runs)
            rules = IdentityRules(
                level=self.profile.identity,
                near_tie_nats=self.profile.tolerances.near_tie_nats,
                is_against_speculation=self.profile.is_against_speculation,
                is_of_two_vllms=self.profile.baseline_python is not None,
            )
            asked = Asked(self.pair, workload)
            witness = Witness(asked=asked, workload=workload, runs=runs, rules=rules)
            self._assessments[workload.name] = assess(
                workload,
                runs,
                measurement=measurement,
                limits=self._limits(),
                find_evidence=witness.evidence,
                identity=rules,
                is_near=witness.is_near,
            )
            if self.recorder is not None:
                self.recorder.write(workload, runs, asked.answers, self.pair)
        return self._assessments[workload.name]

    def point_assessment(self, workload: Workload) -> Assessment:
        """That of a workload at a point of its sweep; after the last one, what steps cost.

        Raises:
            SpecdecError: what kept the engines from running it.
        """
        try:
            return self.assessment(workload)
        finally:
            self._end_points()

    def leave_out(self, workload: Workload) -> None:
        """Notes that a workload at a point is not for this engine."""
        self._left_out.add(workload.name)
        self._end_points()

    def _end_points(self) -> None:
        """After the last point, what steps cost at the loads at which workloads are as they are; a
        whole sweep's would take longer than the sweep. It ends the speculative engine."""
        done = self._assessments.keys() | self._refused.keys() | self._left_out
        if not self._planned.keys() <= done:
            return
        for each in self._assessments.values():
            name, is_one_load = each.workload.name, each.workload.sweep is None
            if (is_one_load or self.base_name is not None) and name not in self.step_costs:
                try:
                    costs = self.pair.step_costs(each.workload)
                except SpecdecError:
                    return  # the gains are measured; what is fatal to the pair, it remembers
                if costs is None:
                    return
                self.step_costs[name] = costs

    def baseline_config(self) -> Mapping[str, Any]:
        """What vLLM made of the baseline engine's arguments; loads that engine, if need be.

        Raises:
            SpecdecError: what kept it from loading.
        """
        if "baseline" not in self.pair.facts:
            self.pair.engine("baseline")
        return self.pair.facts["baseline"].config

    def gated(self, workload: Workload) -> tuple[Metric, ...]:
        """The metrics of a workload that can fail the build."""
        return self.judging.gated(workload)

    def outcome_of(self, assessment: Assessment, subject: Subject) -> Outcome:
        """What a check's finding does to its test, or that there is none."""
        if (missing := assessment.missing.get(subject)) is not None:
            return Outcome(kind="skip", message=missing)
        return self.expected.outcome(assessment, subject, assessment.findings.get(subject))

    @property
    def expected(self) -> Expected:
        """The profile's known defects, as far as the speculative engine's vLLM has them."""
        return Expected(
            defects=self.profile.known_defects, vllm_version=self.pair.versions.get("vllm")
        )

    def _limits(self) -> Limits:
        config = self.pair.facts["baseline"].config
        num_sampled = sum(
            ("distribution", None) in workload_checks(each) for each in self._planned.values()
        )
        return Limits(
            tolerances=self.profile.tolerances,
            num_speculative_tokens=self.profile.num_speculative_tokens("speculative"),
            num_baseline_tokens=self.profile.num_speculative_tokens("baseline"),
            max_model_len=config.get("model_config.max_model_len"),
            vocab_size=config.get("model_config.hf_text_config.vocab_size"),
            # Beside the metrics' allowance; either engine's tokens can fail a workload's check.
            false_alarms=self.judging.false_alarms / (len(ROLES) * max(1, num_sampled)),
        )

    def _runs(self, workload: Workload) -> RunPair:
        """Both engines' runs; a workload that was refused once is not tried again."""
        if (cause := self._refused.get(workload.name)) is not None:
            raise EngineError(
                f"not run, because earlier {cause}",
                hint=f"see the first error of workload `{workload.name}`",
            )
        try:
            return self.pair.run(workload)
        except SpecdecError as error:
            # What is fatal to the pair, the pair remembers.
            if not isinstance(error, FATAL):
                self._refused[workload.name] = str(error).partition("\n")[0]
            raise

    def not_run(self, asked_for: Iterable[Workload]) -> Mapping[str, str]:
        """Why those that have no numbers have none, by name."""
        failure = str(self.pair.failure).partition("\n")[0] if self.pair.failure else None
        return {
            each.name: self._refused.get(each.name) or failure or NOT_REACHED
            for each in asked_for
            if each.name not in self._assessments
        }

    @property
    def assessments(self) -> tuple[Assessment, ...]:
        """Those made so far, in the order they were made."""
        return tuple(self._assessments.values())

    def outcome(self, assessment: Assessment, metric: Metric) -> Outcome:
        """What a metric's verdict does to its test.

        Where the numbers are about to be stored, a verdict that the update settles passes, and
        one that keeps them from being stored fails.
        """
        refused = self.refusals(assessment)
        if self.stored_numbers.is_stored_now(assessment.workload):
            if refused:
                name = assessment.workload.name
                lines = [f"stored baseline of `{name}` not written: {metric}", *refused]
                if self.stored_numbers.hardware_differences:
                    lines.append(f"hint: delete `{self.stored_numbers.file}` and run this again")
                return Outcome(kind="fail", message="\n".join(lines))
            return Outcome(kind="pass", message="")
        verdict = self.verdicts(assessment.workload)[metric]
        judged = outcome(
            verdict, strict=self.options.is_strict, inconclusive=self.options.inconclusive
        )
        if judged.kind == "skip":
            return judged
        failure = verdict if judged.kind == "fail" else None
        return self.expected.outcome(assessment, (metric, None), failure)

    def refusals(self, assessment: Assessment) -> tuple[str, ...]:
        """Why this workload's numbers must not be stored; empty when they may be."""
        if not self.stored_numbers.is_stored_now(assessment.workload):
            return ()
        unstored = self.judging.judged(self._assessments, None)[assessment.workload.name]
        known = self.expected.findings(assessment)
        return (
            *(
                f"{each}: numbers of other hardware are not mixed into one file"
                for each in self.stored_numbers.hardware_differences
            ),
            *(self.recorded.left_out(assessment.workload) if self.recorded else ()),
            *refusals(
                findings=[
                    str(each).partition("\n")[0]
                    for subject, each in assessment.findings.items()
                    if subject not in known
                ],
                verdicts=[
                    verdict
                    for metric, verdict in unstored.items()
                    # Acceptance is what a stored workload cannot be without.
                    if metric == "acceptance" or metric in self.gated(assessment.workload)
                ],
                is_ci=self.options.is_ci,
                is_update_in_ci_allowed=self.options.update_in_ci,
                speedup_drop=self.profile.tolerances.speedup_drop,
            ),
        )

    @property
    def recorded(self) -> RecordedPair | None:
        """The recording that is judged; `None` where engines run."""
        return self.pair if isinstance(self.pair, RecordedPair) else None

    def proposal(self) -> Proposal:
        """What of that which was measured is to be stored, and what may not be."""
        stored_now = [
            each for each in self.assessments if self.stored_numbers.is_stored_now(each.workload)
        ]
        refused = {each.workload.name: self.refusals(each) for each in stored_now}
        accepted = {
            each.workload.name: stored_workload(
                each.measurement,
                self.stored_numbers.provenance(
                    self.pair.versions,
                    each.runs,
                    recorded=self.recorded.header(each.workload) if self.recorded else None,
                ),
            )
            for each in stored_now
            if not refused[each.workload.name]
        }
        return Proposal(
            numbers=self.stored_numbers,
            accepted=accepted,
            refused={name: reasons for name, reasons in refused.items() if reasons},
        )
