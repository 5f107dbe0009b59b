"""One profile's share of the gate: its engines, stored baseline and assessments. Floor 5.

Each thing is done once however many tests ask.
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pytest_specdec.assessment import Assessment, Subject, assess
from pytest_specdec.baseline_store import BaselineStore
from pytest_specdec.baseline_update import (
    DiffRow,
    diff_rows,
    merged,
    refusals,
    stored_workload,
    unused,
)
from pytest_specdec.catalogue import Limits, check_names, workload_checks
from pytest_specdec.checks.evidence import IdentityRules
from pytest_specdec.conditions import disturbances, together
from pytest_specdec.engines.pair import EnginePair
from pytest_specdec.errors import FATAL, EngineError, SpecdecError, StoredBaselineError
from pytest_specdec.expected import Expected
from pytest_specdec.family import Case, judge_family
from pytest_specdec.floors import Rules, line, looks_of, of_other_hardware
from pytest_specdec.generation import RunPair
from pytest_specdec.hardware import Hardware
from pytest_specdec.judge_speedup import is_decided
from pytest_specdec.known_defects import KnownDefect, untested
from pytest_specdec.measurement import measure
from pytest_specdec.options import Options
from pytest_specdec.profile import Profile
from pytest_specdec.report.facts import ABSENT, ProfileReport, Update, WorkloadReport
from pytest_specdec.stored_baseline import Provenance, StoredBaseline, StoredWorkload
from pytest_specdec.verdict import Outcome, Verdict, outcome
from pytest_specdec.witness import Witness
from pytest_specdec.workload import Metric, Workload

UPGRADED = ("vllm", "torch", "driver")


@dataclass
class ProfileGate:
    """One profile's share of the gate."""

    profile: Profile
    hardware: Hardware
    stored: StoredBaseline | None
    pair: EnginePair
    options: Options
    _assessments: dict[str, Assessment] = field(default_factory=dict)
    _refused: dict[str, str] = field(default_factory=dict)
    _untold: dict[str, SpecdecError] = field(default_factory=dict)
    _planned: dict[str, Workload] = field(default_factory=dict)
    _num_profiles: int = 1
    _verdicts: dict[str, dict[Metric, Verdict]] = field(default_factory=dict)

    def plan(self, workloads: Iterable[Workload], *, num_profiles: int) -> None:
        """Names the workloads that will be asked for, and how many profiles the session has: all
        that shares the allowance for false alarms."""
        self._planned = {each.name: each for each in workloads}
        self._num_profiles = num_profiles
        self.pair.plan(self._planned.values(), is_decided=self._is_decided)

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
            self._verdicts = self._judged(self.stored)
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
                level=self.profile.identity, near_tie_nats=self.profile.tolerances.near_tie_nats
            )
            witness = Witness(pair=self.pair, workload=workload, runs=runs, rules=rules)
            self._assessments[workload.name] = assess(
                workload,
                runs,
                measurement=measurement,
                limits=self._limits(),
                find_evidence=witness.evidence,
                identity=rules,
                is_near=witness.is_near,
            )
        return self._assessments[workload.name]

    def gated(self, workload: Workload) -> tuple[Metric, ...]:
        """The metrics of a workload that can fail the build."""
        return tuple(each for each in self.profile.gated if each in workload.gated)

    def outcome_of(self, assessment: Assessment, subject: Subject) -> Outcome:
        """What a check's finding does to its test, or that there is none."""
        if (missing := assessment.missing.get(subject)) is not None:
            return Outcome(kind="skip", message=missing)
        finding = assessment.findings.get(subject)
        text = None if finding is None else str(finding)
        return self.expected.outcome(assessment, subject, text)

    @property
    def expected(self) -> Expected:
        """The profile's known defects, as far as this vLLM has them."""
        return Expected(
            defects=self.profile.known_defects, vllm_version=self.pair.versions.get("vllm")
        )

    def _known(self, assessment: Assessment) -> Mapping[Subject, KnownDefect]:
        """The findings and the failed metrics that a known defect explains."""
        known = dict(self.expected.findings(assessment))
        for metric in self.gated(assessment.workload):
            defect = self.expected.defect(assessment.workload, (metric, None))
            if defect is not None and self.outcome(assessment, metric).kind == "xfail":
                known[metric, None] = defect
        return known

    def _limits(self) -> Limits:
        config = self.pair.facts["baseline"].config
        num_sampled = sum(
            ("distribution", None) in workload_checks(each) for each in self._planned.values()
        )
        return Limits(
            tolerances=self.profile.tolerances,
            num_speculative_tokens=self.profile.speculative_config.get("num_speculative_tokens"),
            max_model_len=config.get("model_config.max_model_len"),
            vocab_size=config.get("model_config.hf_text_config.vocab_size"),
            false_alarms=self._false_alarms / max(1, num_sampled),
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
        if self._is_stored_now(assessment.workload):
            if refused:
                name = assessment.workload.name
                lines = [f"stored baseline of `{name}` not written: {metric}", *refused]
                if self._hardware_differences():
                    lines.append(f"hint: delete `{self.stored_file}` and run this again")
                return Outcome(kind="fail", message="\n".join(lines))
            return Outcome(kind="pass", message="")
        judged = outcome(
            self.verdicts(assessment.workload)[metric],
            strict=self.options.is_strict,
            inconclusive=self.options.inconclusive,
        )
        if judged.kind == "skip":
            return judged
        return self.expected.outcome(assessment, (metric, None), judged.message or None)

    def refusals(self, assessment: Assessment) -> tuple[str, ...]:
        """Why this workload's numbers must not be stored; empty when they may be."""
        if not self._is_stored_now(assessment.workload):
            return ()
        unstored = self._judged(None)[assessment.workload.name]
        known = self.expected.findings(assessment)
        return (
            *(
                f"{each}: numbers of other hardware are not mixed into one file"
                for each in self._hardware_differences()
            ),
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

    def update(self) -> Update:
        """Writes what was measured to the stored baseline, as far as it may be."""
        stored_now = [each for each in self.assessments if self._is_stored_now(each.workload)]
        refused = {each.workload.name: self.refusals(each) for each in stored_now}
        accepted = {
            each.workload.name: stored_workload(each.measurement, self._provenance(each.runs))
            for each in stored_now
            if not refused[each.workload.name]
        }
        mode, path = self.options.update, None
        rows: Sequence[DiffRow] = ()
        if accepted and mode is not None:
            new = StoredBaseline(
                hardware_key=self.hardware.key,
                hardware=self.hardware.facts,
                profile=self.profile.name,
                workloads=accepted,
            )
            both = merged(self.stored, new, mode=mode)
            try:
                path = self._store.save(both)
                rows = diff_rows(self.stored, both)
            except StoredBaselineError as error:
                refused.update(dict.fromkeys(accepted, (str(error).partition("\n")[0],)))
        return Update(
            path=None if path is None else str(path),
            rows=rows,
            refused={name: reasons for name, reasons in refused.items() if reasons},
        )

    def report(self, *, asked_for: Mapping[str, Workload], update: Update | None) -> ProfileReport:
        """All there is to report on the profile.

        Args:
            asked_for: the workloads that some test asked for, by name.
            update: what `update` did, if it was called.
        """
        provenances = [
            stored.provenance
            for each in self.assessments
            if (stored := self.stored_workload(each.workload)) is not None
        ]
        return ProfileReport(
            profile=self.profile,
            hardware=self.hardware,
            versions=self.pair.versions,
            stored_versions={
                name: sorted({each.versions.get(name) or ABSENT for each in provenances})
                for name in UPGRADED
                if provenances
            },
            engines=self.pair.facts,
            num_starts=self.pair.num_starts,
            failure=None if self.pair.failure is None else str(self.pair.failure),
            is_changed=any(each.settings_digest != self.profile.digest for each in provenances),
            workloads=[self._workload_report(each) for each in self.assessments],
            unused=self.unused(asked_for.keys()),
            untested=untested(self.profile.known_defects, self._tests(asked_for.values())),
            update=update,
        )

    def _tests(self, workloads: Iterable[Workload]) -> tuple[tuple[str, str, str | None], ...]:
        """What each test of these workloads is about."""
        return tuple(
            (each.name, check, about)
            for each in workloads
            for check, about in (
                *check_names(each),
                *((metric, None) for metric in self.gated(each)),
            )
        )

    def unused(self, asked_for: Collection[str]) -> tuple[str, ...]:
        """Names of stored workloads that are not among those asked for."""
        return () if self.stored is None else unused(self.stored, asked_for)

    def _workload_report(self, assessment: Assessment) -> WorkloadReport:
        stored, rate = self.stored_workload(assessment.workload), assessment.measurement
        is_comparable = stored is not None and stored.digest == rate.workload_digest
        return WorkloadReport(
            assessment=assessment,
            verdicts=self.verdicts(assessment.workload),
            gated=self.gated(assessment.workload),
            known=self._known(assessment),
            rate=None
            if rate.acceptance_rate is None
            else line(
                "acceptance rate",
                rate.acceptance_rate,
                stored=stored.acceptance.rate if stored and is_comparable else None,
                drop=self.profile.tolerances.acceptance_rate_drop,
            ),
            is_stored_now=self._is_stored_now(assessment.workload)
            and not self.refusals(assessment),
            # Of what is not timed they disturb nothing.
            disturbances=self._disturbances(assessment.runs) if assessment.workload.gated else (),
        )

    def stored_workload(self, workload: Workload) -> StoredWorkload | None:
        """The workload's stored numbers, if there are any."""
        return None if self.stored is None else self.stored.workloads.get(workload.name)

    def _is_stored_now(self, workload: Workload) -> bool:
        if not workload.gated:
            return False  # nothing of it is timed
        mode = self.options.update
        return mode == "all" or (mode == "new" and self.stored_workload(workload) is None)

    def _judged(self, stored: StoredBaseline | None) -> dict[str, dict[Metric, Verdict]]:
        """The verdicts on all that has run, against one stored baseline or none."""
        differences = () if stored is None else self._hardware_differences()
        of = {} if stored is None else stored.workloads
        rules = self._rules(differences)
        cases = {
            name: Case(
                measurement=each.measurement,
                stored=of.get(name),
                gated=self.gated(each.workload),
                rules=replace(
                    rules,
                    # What is to be stored gets all passes: it is looked at once, by all of them.
                    looks=rules.looks[-1:] if self._is_stored_now(each.workload) else rules.looks,
                    disturbances=self._disturbances(each.runs),
                ),
            )
            for name, each in self._assessments.items()
        }
        verdicts = judge_family(
            cases,
            false_alarms=self._false_alarms,
            num_missing=sum(
                len(self.gated(each)) for name, each in self._planned.items() if name not in cases
            ),
        )
        if not differences:
            return verdicts
        file, update_command = str(self.stored_file), self.options.update_command
        return {
            name: {
                metric: of_other_hardware(verdict, file=file, update_command=update_command)
                for metric, verdict in each.items()
            }
            for name, each in verdicts.items()
        }

    @property
    def _false_alarms(self) -> float:
        """This profile's share of what the session is allowed."""
        return self.profile.tolerances.false_alarms / self._num_profiles

    def _rules(self, hardware_differences: tuple[str, ...] = ()) -> Rules:
        """At the level that each figure is held to before any has failed."""
        num_gated = max(1, sum(len(self.gated(each)) for each in self._planned.values()))
        return Rules(
            tolerances=self.profile.tolerances,
            level=self._false_alarms / num_gated,
            looks=looks_of(self.profile),
            counts_loads=self.profile.num_loads > 1,
            update_command=self.options.update_command,
            hardware_differences=hardware_differences,
        )

    def _disturbances(self, runs: RunPair) -> tuple[str, ...]:
        conditions = together(runs.conditions)
        return () if conditions is None else disturbances(conditions, self.profile.limits)

    def _is_decided(self, workload: Workload, runs: RunPair) -> bool:
        """Whether more passes would tell nothing that is asked: numbers that are to be stored get
        all that the profile allows, others no more than they need."""
        if self._is_stored_now(workload):
            return False
        if "speedup" not in self.gated(workload):
            return True
        rules = self._rules(self._hardware_differences())
        return is_decided(measure(workload, runs), self.stored_workload(workload), rules=rules)

    @property
    def stored_file(self) -> Path:
        """Where the stored baseline is, or would be."""
        return self._store.path(self.hardware.key, self.profile.name)

    @property
    def stored_hardware_keys(self) -> tuple[str, ...]:
        """The kinds of hardware that the profile has a stored baseline for."""
        return self._store.hardware_keys(self.profile.name)

    @property
    def _store(self) -> BaselineStore:
        return BaselineStore(self.options.baselines_folder)

    def _hardware_differences(self) -> tuple[str, ...]:
        """How the stored file's hardware differs from what is here."""
        if self.stored is None:
            return ()
        return self.stored.hardware_differences(self.hardware.key, self.hardware.facts)

    def _provenance(self, runs: RunPair) -> Provenance:
        return Provenance(
            versions=self.pair.versions,
            commit=_commit(self.options.config_file.parent),
            date=datetime.now(UTC).date().isoformat(),
            num_loads=runs.num_loads,
            num_passes=runs.passes_per_load,
            settings_digest=self.profile.digest,
        )


def _commit(folder: Path) -> str | None:
    """The commit of the project whose suites ran; `None` outside version control."""
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
