"""Assessment: what one workload's runs say by themselves: defects in the answers, and figures.

Pure, so that saved runs can be assessed again. Verdicts are `family`'s work: they depend on what
else is gated. Floor 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pytest_specdec.catalogue import (
    AGAIN,
    IDENTICAL,
    UNKNOWN,
    Case,
    Limits,
    prompt_checks,
    workload_checks,
)
from pytest_specdec.checks.again import IsNear, never_near
from pytest_specdec.checks.evidence import EXACT, Evidence, IdentityRules
from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.identity import Divergence, find_divergence
from pytest_specdec.checks.triage import triage
from pytest_specdec.checks.validity import checks_for, invalid
from pytest_specdec.generation import ROLES, Role, RunPair
from pytest_specdec.measurement import Measurement
from pytest_specdec.workload import Workload

FindEvidence = Callable[[Divergence], Evidence | None]
Subject = tuple[str, str | None]
"""A check, and the prompt or the circumstance that it is about; `None` for the whole workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """One workload under one profile.

    Attributes:
        findings: defects by check and what it is about; what is not there has none.
        num_identical: greedy prompts with identical answers, of `num_greedy`.
        num_valid: prompts whose answers satisfy what they declare, by engine, of `num_checked`.
        near_ties: by prompt id, differences that the profile's level lets pass.
        missing: by check, why it could not be made.
    """

    workload: Workload
    runs: RunPair
    measurement: Measurement
    findings: Mapping[Subject, Finding]
    num_greedy: int
    num_checked: int
    num_valid: Mapping[Role, int]
    near_ties: Mapping[str, Finding] = field(default_factory=dict)
    missing: Mapping[Subject, str] = field(default_factory=dict)

    @property
    def num_identical(self) -> int:
        num_failed = sum(check == IDENTICAL for check, _ in self.findings)
        return self.num_greedy - num_failed - len(self.near_ties)


def assess(
    workload: Workload,
    runs: RunPair,
    *,
    measurement: Measurement,
    limits: Limits = UNKNOWN,
    find_evidence: FindEvidence = lambda _: None,
    identity: IdentityRules = EXACT,
    is_near: IsNear = never_near,
) -> Assessment:
    """Every check on every prompt, and on the workload.

    Args:
        limits: what the answers are held to.
        find_evidence: asks the baseline engine about a divergence; called only where there is one.
        identity: what its answer is held to.
        is_near: asks it about an answer given again that differs, likewise.
    """
    found: dict[Subject, Finding | None] = {}
    near_ties: dict[str, Finding] = {}
    greedy = [prompt for prompt in workload.asked if prompt.is_greedy]
    for prompt in greedy:
        divergence = find_divergence(runs, prompt.id)
        if divergence is None:
            continue
        triaged = triage(divergence, find_evidence(divergence), prompt=prompt, rules=identity)
        if triaged.is_accepted:
            near_ties[prompt.id] = triaged.finding
        else:
            found[IDENTICAL, prompt.id] = triaged.finding
    case = Case(workload=workload, runs=runs, limits=limits, is_near=is_near)
    for prompt in workload.prompts:
        for name, check in prompt_checks(prompt).items():
            found[name, prompt.id] = check(case, prompt)
    for subject, judge in workload_checks(workload).items():
        found[subject] = judge(case)
    return Assessment(
        workload=workload,
        runs=runs,
        measurement=measurement,
        findings={subject: each for subject, each in found.items() if each is not None},
        num_greedy=len(greedy),
        num_checked=sum(bool(checks_for(prompt)) for prompt in workload.asked),
        num_valid={role: _num_valid(case, role) for role in ROLES},
        near_ties=near_ties,
        missing={
            (AGAIN, each.circumstance): each.missing
            for each in runs.retakes
            if each.missing is not None
        },
    )


def _num_valid(case: Case, role: Role) -> int:
    """Prompts whose answers by one engine satisfy all that they declare."""
    return sum(
        all(invalid(prompt, case.answers(prompt)[role], check) is None for check in checks.values())
        for prompt in case.workload.asked
        if (checks := checks_for(prompt))
    )
