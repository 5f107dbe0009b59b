"""Assessment: what one workload's runs say by themselves: defects in the answers, and figures.

Pure, so that saved runs can be assessed again. Verdicts are `family`'s work: they depend on what
else is gated. Floor 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pytest_specdec.checks.evidence import EXACT, Evidence, IdentityRules
from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.identity import Divergence, find_divergence
from pytest_specdec.checks.triage import triage
from pytest_specdec.checks.validity import checks_for, judge_validity
from pytest_specdec.generation import ROLES, Role, RunPair
from pytest_specdec.measurement import Measurement
from pytest_specdec.workload import Prompt, Workload

IDENTICAL = "identical"
FindEvidence = Callable[[Divergence], Evidence | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """One workload under one profile.

    Attributes:
        findings: defects by check and prompt id; what is not there has none.
        num_identical: greedy prompts with identical answers, of `num_greedy`.
        num_valid: prompts whose answers satisfy what they declare, by engine, of `num_checked`.
        near_ties: by prompt id, differences that the profile's level lets pass.
    """

    workload: Workload
    runs: RunPair
    measurement: Measurement
    findings: Mapping[tuple[str, str], Finding]
    num_greedy: int
    num_checked: int
    num_valid: Mapping[Role, int]
    near_ties: Mapping[str, Finding] = field(default_factory=dict)

    @property
    def num_identical(self) -> int:
        num_failed = sum(check == IDENTICAL for check, _ in self.findings)
        return self.num_greedy - num_failed - len(self.near_ties)


def check_names(prompt: Prompt) -> tuple[str, ...]:
    """The checks a prompt gets, by the names its test items have."""
    identity = (IDENTICAL,) if prompt.is_greedy else ()
    return (*identity, *checks_for(prompt))


def assess(
    workload: Workload,
    runs: RunPair,
    *,
    measurement: Measurement,
    find_evidence: FindEvidence = lambda _: None,
    identity: IdentityRules = EXACT,
) -> Assessment:
    """Every check on every prompt.

    Args:
        find_evidence: asks the baseline engine about a divergence; called only where there is one.
        identity: what its answer is held to.
    """
    findings: dict[tuple[str, str], Finding] = {}
    near_ties: dict[str, Finding] = {}
    num_valid = dict.fromkeys(ROLES, 0)
    checked = [prompt for prompt in workload.prompts if checks_for(prompt)]
    for prompt in workload.prompts:
        divergence = find_divergence(runs, prompt.id) if prompt.is_greedy else None
        if divergence is not None:
            found = triage(divergence, find_evidence(divergence), prompt=prompt, rules=identity)
            if found.is_accepted:
                near_ties[prompt.id] = found.finding
            else:
                findings[IDENTICAL, prompt.id] = found.finding
    for prompt in checked:
        answers = {role: runs.run(role).passes[0].generation(prompt.id) for role in ROLES}
        for name, check in checks_for(prompt).items():
            finding = judge_validity(prompt, **answers, check=check)
            if finding is not None:
                findings[name, prompt.id] = finding
        for role in ROLES:
            num_valid[role] += all(
                check(prompt, answers[role]) is None for check in checks_for(prompt).values()
            )
    return Assessment(
        workload=workload,
        runs=runs,
        measurement=measurement,
        findings=findings,
        num_greedy=sum(prompt.is_greedy for prompt in workload.prompts),
        num_checked=len(checked),
        num_valid=num_valid,
        near_ties=near_ties,
    )
