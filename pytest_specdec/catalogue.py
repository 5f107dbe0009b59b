"""The catalogue: every check there is, by the name its test items have, and who gets it.

What a prompt or a workload declares decides. Each check is a pure function from what both engines
said to a finding, or to none; `identical` alone asks the baseline engine about what it found, and
is `assessment`'s. Floor 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from pytest_specdec.checks.again import IsNear, check_again, never_near
from pytest_specdec.checks.conservation import check_counts
from pytest_specdec.checks.drift import check_drift
from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.honoured import declares_anything, judge_honoured
from pytest_specdec.checks.liveness import check_exercised
from pytest_specdec.checks.logprobs import judge_logprobs
from pytest_specdec.checks.refused import check_refused
from pytest_specdec.checks.replay import check_replay
from pytest_specdec.checks.validity import CHECKS as VALIDITY_CHECKS
from pytest_specdec.checks.validity import checks_for, judge_validity
from pytest_specdec.generation import ROLES, Generation, Retake, Role, RunPair
from pytest_specdec.judge_distribution import (
    can_be_judged,
    distribution_finding,
    judge_distribution,
)
from pytest_specdec.profile import Tolerances
from pytest_specdec.workload import Prompt, Workload

IDENTICAL = "identical"
AGAIN = "again"
CHECKS = (
    IDENTICAL,
    *VALIDITY_CHECKS,
    "replay",
    "honoured",
    "logprobs",
    "refused",
    "exercised",
    "counts",
    "drift",
    "distribution",
    AGAIN,
)
"""All names; a profile's known defects are held to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the answers are held to, beside what their prompts declare.

    Attributes:
        tolerances: the profile's.
        num_speculative_tokens: tokens of a draft at most; `None` where the profile does not say.
        num_baseline_tokens: likewise of the baseline engine; 0 where it does not speculate.
        max_model_len: the context window, in tokens; `None` where it is not known.
        vocab_size: tokens that the model has; `None` where it is not known.
        false_alarms: how often one engine's sampled answers to one workload may be called biased
            by chance.
    """

    tolerances: Tolerances
    num_speculative_tokens: int | None = None
    num_baseline_tokens: int | None = 0
    max_model_len: int | None = None
    vocab_size: int | None = None
    false_alarms: float = 0.01


UNKNOWN = Limits(tolerances=Tolerances())
"""Those of a profile that says nothing, with a model of which nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One workload's runs, and what they are held to.

    Attributes:
        is_near: whether a greedy answer that differs from the baseline engine's first one is as
            good; asks that engine.
    """

    workload: Workload
    runs: RunPair
    limits: Limits
    is_near: IsNear = never_near

    def answers(self, prompt: Prompt) -> dict[Role, Generation]:
        """Both engines' first answers to a prompt."""
        return {role: self.runs.run(role).passes[0].generation(prompt.id) for role in ROLES}

    def retake(self, circumstance: str) -> Retake:
        """The answers given under a circumstance. Raises KeyError if none were asked for."""
        for retake in self.runs.retakes:
            if retake.circumstance == circumstance:
                return retake
        raise KeyError(circumstance)


PromptCheck = Callable[[Case, Prompt], Finding | None]
WorkloadCheck = Callable[[Case], Finding | None]


def _valid(name: str) -> PromptCheck:
    def judge(case: Case, prompt: Prompt) -> Finding | None:
        return judge_validity(prompt, **case.answers(prompt), check=checks_for(prompt)[name])

    return judge


def _honoured(case: Case, prompt: Prompt) -> Finding | None:
    return judge_honoured(prompt, **case.answers(prompt), max_model_len=case.limits.max_model_len)


def _logprobs(case: Case, prompt: Prompt) -> Finding | None:
    tolerance_nats = case.limits.tolerances.logprob_nats
    return judge_logprobs(prompt, **case.answers(prompt), tolerance_nats=tolerance_nats)


def _replay(case: Case, prompt: Prompt) -> Finding | None:
    return check_replay(case.runs, prompt.id)


def _refused(case: Case, prompt: Prompt) -> Finding | None:
    is_against_speculation = case.limits.num_baseline_tokens != 0
    return check_refused(prompt, case.runs, is_against_speculation=is_against_speculation)


def _exercised(case: Case) -> Finding | None:
    return check_exercised(
        case.workload,
        case.runs,
        num_speculative_tokens=case.limits.num_speculative_tokens,
        num_baseline_tokens=case.limits.num_baseline_tokens,
    )


def _counts(case: Case) -> Finding | None:
    return check_counts(
        case.workload,
        case.runs,
        num_speculative_tokens=case.limits.num_speculative_tokens,
        num_baseline_tokens=case.limits.num_baseline_tokens,
    )


def _drift(case: Case) -> Finding | None:
    drop = case.limits.tolerances.acceptance_rate_drop
    return check_drift(case.workload, case.runs, acceptance_rate_drop=drop)


def _again(case: Case, circumstance: str) -> Finding | None:
    retake = case.retake(circumstance)
    if retake.missing is not None:
        return None  # the test is skipped, and says why
    return check_again(
        case.workload,
        case.runs,
        retake,
        acceptance_rate_drop=case.limits.tolerances.acceptance_rate_drop,
        is_near=case.is_near,
    )


def _distribution(case: Case) -> Finding | None:
    if case.limits.vocab_size is None:
        return Finding(
            kind="not judged",
            prompt_id=None,
            facts=("the size of the model's vocabulary is not known",),
        )
    scores = {
        role: [each.scores for each in case.runs.sample_scores if each.role == role]
        for role in ROLES
    }
    verdict = judge_distribution(
        **scores, vocab_size=case.limits.vocab_size, false_alarms=case.limits.false_alarms
    )
    return distribution_finding(verdict)


def prompt_checks(prompt: Prompt) -> dict[str, PromptCheck]:
    """What a prompt gets beside `identical`."""
    if prompt.is_refused:
        return {"refused": _refused}
    checks: dict[str, PromptCheck] = {name: _valid(name) for name in checks_for(prompt)}
    if prompt.is_seeded:
        checks["replay"] = _replay
    if declares_anything(prompt):
        checks["honoured"] = _honoured
    if "logprobs" in prompt.request:
        checks["logprobs"] = _logprobs
    return checks


def workload_checks(workload: Workload) -> dict[tuple[str, str | None], WorkloadCheck]:
    """What a whole workload gets, by name and circumstance."""
    checks: dict[tuple[str, str | None], WorkloadCheck] = {
        ("exercised", None): _exercised,
        ("counts", None): _counts,
    }
    if workload.gated:
        checks["drift", None] = _drift
    if can_be_judged(workload):
        checks["distribution", None] = _distribution
    for circumstance in workload.again:
        checks[AGAIN, circumstance] = partial(_again, circumstance=circumstance)
    return checks


def check_names(workload: Workload) -> Iterator[tuple[str, str | None]]:
    """Every check of a workload and what it is about: a prompt's id, a circumstance, or `None`."""
    for prompt in workload.prompts:
        if prompt.is_greedy and not prompt.is_refused:
            yield IDENTICAL, prompt.id
        for name in prompt_checks(prompt):
            yield name, prompt.id
    yield from workload_checks(workload)
