"""Diverging answers as data: both texts, and where they part. Floor 4.

What differs is found again in the runs, by the rules of `checks.identity`; why it does is the
finding's to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from pytest_specdec.assessment import Subject
from pytest_specdec.catalogue import AGAIN, IDENTICAL
from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.identity import Divergence, compare, find_divergence, find_unrepeated
from pytest_specdec.generation import Generation, Role, RunPair
from pytest_specdec.report.facts import WorkloadReport
from pytest_specdec.workload import Workload

REPLAY = "replay"
# The kinds of `again` that are differences, and the engine whose retake differs.
_AGAIN_OF: Mapping[str, Role] = {
    "divergence": "speculative",
    "baseline not repeatable": "baseline",
}


def divergences(report: WorkloadReport) -> list[dict[str, Any]]:
    """Of all findings that are about a difference, near ties among them."""
    assessment = report.assessment
    subjects: dict[Subject, Finding] = {
        **{(IDENTICAL, about): each for about, each in assessment.near_ties.items()},
        **assessment.findings,
    }
    return [
        each
        for subject, finding in subjects.items()
        for each in _of(subject, finding, assessment.workload, assessment.runs)
    ]


def _of(
    subject: Subject, finding: Finding, workload: Workload, runs: RunPair
) -> Iterator[dict[str, Any]]:
    check, about = subject
    if check == AGAIN and finding.prompt_id is None and about is not None:
        yield from _of_retake(subject, workload, runs, _AGAIN_OF.get(finding.kind))
    elif about is not None and check in (IDENTICAL, REPLAY):
        find = find_divergence if check == IDENTICAL else find_unrepeated
        if (found := find(runs, about)) is not None:
            yield _told(subject, found, *_labels(found))


def _of_retake(
    subject: Subject, workload: Workload, runs: RunPair, role: Role | None
) -> Iterator[dict[str, Any]]:
    """Each greedy prompt whose retake is not the baseline engine's first answer."""
    retake = next((each for each in runs.retakes if each.circumstance == subject[1]), None)
    if retake is None or role is None:
        return
    again = retake.speculative if role == "speculative" else retake.baseline
    if again is None:
        return
    for prompt in workload.asked:
        first = runs.baseline.passes[0].generation(prompt.id)
        found = compare(first, again.generation(prompt.id)) if prompt.is_greedy else None
        if found is not None:
            labels = ("baseline engine, first pass", f"{role} engine, {subject[1]}")
            yield _told(subject, found, *labels)


def _labels(found: Divergence) -> tuple[str, str]:
    role = found.unrepeated
    if role is None:
        return "baseline engine", "speculative engine"
    return f"{role} engine, first pass", f"{role} engine, a later pass"


def _told(subject: Subject, found: Divergence, first: str, second: str) -> dict[str, Any]:
    own, other = found.token_ids
    return {
        "check": subject[0],
        "about": subject[1],
        "prompt_id": found.baseline.prompt_id,
        "where": found.where,
        "token_position": found.position,
        "text_position": _first_difference(found.baseline.text, found.other.text),
        "first": _side(first, found.baseline, own),
        "second": _side(second, found.other, other),
    }


def _side(label: str, answer: Generation, token_id: int | None) -> dict[str, Any]:
    return {
        "label": label,
        "text": answer.text,
        "num_tokens": len(answer.token_ids),
        "token_id": token_id,
        "finish_reason": answer.finish_reason,
    }


def _first_difference(first: str, second: str) -> int | None:
    """`None` where the texts are equal, as they are when only an end token differs."""
    pairs = enumerate(zip_longest(first, second))
    return next((at for at, (own, other) in pairs if own != other), None)
