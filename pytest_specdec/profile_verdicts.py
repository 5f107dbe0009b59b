"""How one profile's figures are judged: together, at one allowance for false alarms. Floor 5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pytest_specdec.assessment import Assessment
from pytest_specdec.conditions import disturbances, together
from pytest_specdec.family import Case, judge_family
from pytest_specdec.floors import Rules, looks_of, of_other_hardware
from pytest_specdec.generation import RunPair
from pytest_specdec.judge_speedup import is_decided
from pytest_specdec.measurement import measure
from pytest_specdec.profile import Profile
from pytest_specdec.stored_baseline import StoredBaseline
from pytest_specdec.stored_numbers import StoredNumbers
from pytest_specdec.verdict import Verdict
from pytest_specdec.workload import Metric, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileVerdicts:
    """What all verdicts on one profile depend on.

    Attributes:
        planned: by name, the workloads that will be asked for.
        num_profiles: of the session; they share its allowance.
    """

    profile: Profile
    stored_numbers: StoredNumbers
    planned: Mapping[str, Workload]
    num_profiles: int

    @property
    def false_alarms(self) -> float:
        """This profile's share of what the session is allowed: for its gated figures together, and
        as much for its sampled answers together."""
        return self.profile.tolerances.false_alarms / self.num_profiles

    def gated(self, workload: Workload) -> tuple[Metric, ...]:
        """The metrics of a workload that can fail the build."""
        return tuple(each for each in self.profile.gated if each in workload.gated)

    def disturbances(self, runs: RunPair) -> tuple[str, ...]:
        """What else went on during these runs, beyond the profile's limits."""
        conditions = together(runs.conditions)
        return () if conditions is None else disturbances(conditions, self.profile.limits)

    def judged(
        self, assessments: Mapping[str, Assessment], stored: StoredBaseline | None
    ) -> dict[str, dict[Metric, Verdict]]:
        """The verdicts on all that has run, against one stored baseline or none."""
        differences = () if stored is None else self.stored_numbers.hardware_differences
        of = {} if stored is None else stored.workloads
        verdicts = judge_family(
            {
                name: Case(
                    measurement=each.measurement,
                    stored=of.get(name),
                    gated=self.gated(each.workload),
                    rules=self._rules_for(each, differences),
                )
                for name, each in assessments.items()
            },
            false_alarms=self.false_alarms,
            num_missing=sum(
                len(self.gated(each))
                for name, each in self.planned.items()
                if name not in assessments
            ),
        )
        if not differences:
            return verdicts
        file, update_command = str(self.stored_numbers.file), self._update_command
        return {
            name: {
                metric: of_other_hardware(verdict, file=file, update_command=update_command)
                for metric, verdict in each.items()
            }
            for name, each in verdicts.items()
        }

    def is_decided(self, workload: Workload, runs: RunPair) -> bool:
        """Whether more passes would tell nothing that is asked: numbers that are to be stored get
        all that the profile allows, others no more than they need."""
        if self.stored_numbers.is_stored_now(workload):
            return False
        if "speedup" not in self.gated(workload):
            return True
        rules = self._rules(self.stored_numbers.hardware_differences)
        stored = self.stored_numbers.workload(workload)
        return is_decided(measure(workload, runs), stored, rules=rules)

    def _rules_for(self, assessment: Assessment, hardware_differences: tuple[str, ...]) -> Rules:
        rules = self._rules(hardware_differences)
        # What is to be stored gets all passes: it is looked at once, by all of them.
        is_stored_now = self.stored_numbers.is_stored_now(assessment.workload)
        return replace(
            rules,
            looks=rules.looks[-1:] if is_stored_now else rules.looks,
            disturbances=self.disturbances(assessment.runs),
        )

    def _rules(self, hardware_differences: tuple[str, ...]) -> Rules:
        """At the level that each figure is held to before any has failed."""
        num_gated = max(1, sum(len(self.gated(each)) for each in self.planned.values()))
        return Rules(
            tolerances=self.profile.tolerances,
            level=self.false_alarms / num_gated,
            looks=looks_of(self.profile),
            counts_loads=self.profile.num_loads > 1,
            update_command=self._update_command,
            hardware_differences=hardware_differences,
            is_against_speculation=self.profile.is_against_speculation,
        )

    @property
    def _update_command(self) -> str:
        return self.stored_numbers.options.update_command
