"""What a session has to report on one profile; and one word for each workload. Floor 4."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from pytest_specdec.assessment import Assessment, Subject
from pytest_specdec.baseline_update import DiffRow
from pytest_specdec.engines.protocol import EngineFacts
from pytest_specdec.floors import Line
from pytest_specdec.generation import ROLES, Role
from pytest_specdec.hardware import Hardware
from pytest_specdec.known_defects import KnownDefect
from pytest_specdec.profile import Profile
from pytest_specdec.stored_baseline import StoredWorkload
from pytest_specdec.verdict import Verdict
from pytest_specdec.workload import Metric
from pytest_specdec.worth_it import WorthIt

STORED = "stored"
KNOWN = "known defect"
ABSENT = "-"
NOT_REACHED = "the session ended before it"
# The worst comes first: a workload is as good as its worst verdict.
WORST_FIRST = (
    "failed",
    "unmeasured",
    "incomparable",
    "no stored baseline",
    "inconclusive",
    "passed",
)
OverallVerdict = Literal["error", "failed", "passed", "nothing ran"]
"""What comes of a profile, or of a session: an `error` is what kept a workload from running."""
OwnOutcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
"""pytest's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadReport:
    """One workload.

    Attributes:
        verdicts: by metric.
        gated: the metrics whose verdicts can fail the build; the others are information.
        rate: acceptance rate now, stored and its floor; `None` when nothing was drafted.
        is_stored_now: whether its numbers become the stored ones.
        known: findings and failed metrics that a known defect explains; they do not fail the build.
        unseen: known defects that its tests should have shown, and did not; that fails the build.
        disturbances: what else went on while it was timed, beyond the profile's limits.
        stored: its stored numbers, where they are of the same prompts.
        failing: the gated metrics that fail the build.
        not_stored: why its numbers, which were to become the stored ones, do not.
    """

    assessment: Assessment
    verdicts: Mapping[Metric, Verdict]
    gated: Sequence[Metric]
    rate: Line | None
    is_stored_now: bool
    known: Mapping[Subject, KnownDefect] = field(default_factory=dict)
    unseen: Sequence[KnownDefect] = ()
    disturbances: Sequence[str] = ()
    stored: StoredWorkload | None = None
    failing: Sequence[Metric] = ()
    not_stored: Sequence[str] = ()

    @property
    def is_defective(self) -> bool:
        """Whether a check fails the build, or a known defect that did not show itself."""
        return bool(self.assessment.findings.keys() - self.known.keys() or self.unseen)

    @property
    def verdict(self) -> str:
        """One word, or a few, for the whole workload. Where nothing is gated its checks decide."""
        if self.is_defective:
            return "failed"
        if self.is_stored_now:
            return STORED
        kinds = {
            self.verdicts[metric].kind for metric in self.gated if (metric, None) not in self.known
        }
        rest = KNOWN if self.known else "passed"
        return next((kind for kind in WORST_FIRST if kind in kinds), rest)

    def word(self, metric: Metric) -> str:
        """One for one metric: its verdict, or that its numbers became the stored ones."""
        return STORED if self.is_stored_now else self.verdicts[metric].kind

    @property
    def gated_verdicts(self) -> Sequence[Verdict]:
        """Those that can fail the build."""
        return [self.verdicts[metric] for metric in self.gated]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTest:
    """A test of a user's own that uses the plugin's fixtures.

    Attributes:
        workload: the one that it names; `None` for one that names none.
        message: the first line of its failure, or why it was skipped; `None` for one that passed.
    """

    node_id: str
    workload: str | None
    outcome: OwnOutcome
    message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What a session wrote, or would not write, to one stored baseline.

    Attributes:
        path: the file; `None` when nothing was written.
        rows: stored numbers that changed.
        refused: why, by workload.
    """

    path: str | None
    rows: Sequence[DiffRow]
    refused: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileReport:
    """One profile.

    Attributes:
        versions: of vLLM and what is under it, by the speculative engine's interpreter;
            `baseline_vllm` where the baseline engine has its own.
        stored_versions: those the stored numbers were recorded with, all distinct ones.
        engines: what each loaded engine is.
        num_starts: engine starts in this session.
        failure: what ended the engines before their time, if anything did.
        is_changed: whether the profile's settings are not those the numbers were stored with.
        unused: stored workloads that no test asked for.
        untested: known defects that no test is about.
        update: `None` when none was asked for.
        not_run: why, by name, for each workload that tests asked for and that has no numbers.
        is_unused_failing: whether `unused` fails the build.
        own_tests: those of a user's own that need the profile, in the order they ran.
        worth_it: what a session that asks whether speculation pays has found; `None` for others.
    """

    profile: Profile
    hardware: Hardware
    versions: Mapping[str, str | None]
    stored_versions: Mapping[str, Sequence[str]]
    engines: Mapping[Role, EngineFacts]
    num_starts: Mapping[Role, int]
    failure: str | None
    is_changed: bool
    workloads: Sequence[WorkloadReport]
    unused: Sequence[str]
    untested: Sequence[KnownDefect]
    update: Update | None
    not_run: Mapping[str, str] = field(default_factory=dict)
    is_unused_failing: bool = False
    own_tests: Sequence[OwnTest] = ()
    worth_it: WorthIt | None = None

    @property
    def verdict(self) -> OverallVerdict:
        """One word for the profile."""
        refused = {*self.not_run.values()} - {NOT_REACHED}
        own = {each.outcome for each in self.own_tests}
        has_run = bool(self.workloads or (self.worth_it is not None and self.worth_it.points))
        if self.failure is not None or refused or (has_run and self.not_run):
            return "error"
        if "error" in own:
            return "error"
        is_failing = any(each.is_defective or each.failing for each in self.workloads)
        if is_failing or self._is_not_worth_it or self.is_unused_failing or "failed" in own:
            return "failed"
        return "passed" if has_run or own - {"skipped"} else "nothing ran"

    @property
    def _is_not_worth_it(self) -> bool:
        """Whether a gain that there must be is not there, or was had with other answers."""
        told = self.worth_it
        return told is not None and bool(
            told.unmet or any(each.answer == "not identical" for each in told.points)
        )

    @property
    def config_differences(self) -> Mapping[str, tuple[object, object]]:
        """What the two engines differ in, baseline's, then speculative's: versions, how they
        speculate where both do, and what vLLM resolved differently."""
        if len(self.engines) < 2:
            return {}
        return {
            key: (first.get(key), second.get(key))
            for first, second in zip(*map(self._told, ROLES), strict=True)
            for key in sorted(first.keys() | second.keys())
            if first.get(key) != second.get(key)
        }

    def _told(self, role: Role) -> tuple[Mapping[str, object], ...]:
        """What is told of one engine, in the order of `config_differences`."""
        facts, own = self.engines[role], {}
        if self.profile.is_against_speculation:
            config = self.profile.speculation(role) or {}
            own = {f"speculative_config.{key}": value for key, value in config.items()}
        return facts.versions, own, facts.config


def overall(verdicts: Collection[OverallVerdict]) -> OverallVerdict:
    """The worst of several."""
    return next((each for each in get_args(OverallVerdict) if each in verdicts), "nothing ran")
