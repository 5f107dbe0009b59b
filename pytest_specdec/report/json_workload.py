"""One workload's part of `report.json`. Floor 4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from pytest_specdec.assessment import Subject
from pytest_specdec.catalogue import IDENTICAL
from pytest_specdec.checks.finding import Finding
from pytest_specdec.counters import DraftCounters, total
from pytest_specdec.prompt_speedup import prompt_times
from pytest_specdec.report.divergences import divergences
from pytest_specdec.report.facts import WorkloadReport
from pytest_specdec.stored_baseline import StoredAcceptance
from pytest_specdec.workload import Prompt


def workload_data(report: WorkloadReport) -> dict[str, Any]:
    """Everything about it, as plain values."""
    assessment, workload = report.assessment, report.assessment.workload
    return {
        "name": workload.name,
        "description": workload.description,
        "digest": workload.digest,
        "concurrency": workload.concurrency,
        "again": workload.again,
        "verdict": report.verdict,
        "is_failing": report.is_defective or bool(report.failing),
        "gated": report.gated,
        "failing": report.failing,
        "disturbances": report.disturbances,
        **_checked(report),
        "verdicts": {name: asdict(each) for name, each in report.verdicts.items()},
        "figures": _figures(report),
        "stored": None if report.stored is None else asdict(report.stored.provenance),
        "not_stored": report.not_stored,
        "prompts": [_prompt(report, each) for each in workload.prompts],
        "measurement": asdict(assessment.measurement),
        "runs": assessment.runs.to_json(),
    }


def _checked(report: WorkloadReport) -> dict[str, Any]:
    """What the checks found, and what was known before."""
    assessment = report.assessment
    return {
        "num_greedy": assessment.num_greedy,
        "num_identical": assessment.num_identical,
        "num_near_ties": len(assessment.near_ties),
        "near_ties": [
            _told((IDENTICAL, about), each, severity="note")
            for about, each in assessment.near_ties.items()
        ],
        "num_checked": assessment.num_checked,
        "num_valid": assessment.num_valid,
        "findings": [*_findings(report)],
        "divergences": divergences(report),
        "known_defects": [
            {"check": check, "about": about, "versions": defect.versions, "reason": defect.reason}
            for (check, about), defect in report.known.items()
        ],
        "unexpected_passes": [asdict(each) for each in report.unseen],
        "missing": [
            {"check": check, "about": about, "reason": reason}
            for (check, about), reason in assessment.missing.items()
        ],
    }


def _findings(report: WorkloadReport) -> Iterator[dict[str, Any]]:
    for subject, finding in report.assessment.findings.items():
        defect = report.known.get(subject)
        severity = "error" if defect is None else "warning"
        known = None if defect is None else str(defect)
        yield {**_told(subject, finding, severity=severity), "known_defect": known}


def _told(subject: Subject, finding: Finding, *, severity: str) -> dict[str, Any]:
    """`severity` is what it does to the build: an `error` fails it, a `warning` is a known defect,
    a `note` is let pass."""
    check, about = subject
    return {"check": check, "about": about, "severity": severity, **asdict(finding)}


def _figures(report: WorkloadReport) -> dict[str, Any]:
    """Each figure now and stored; `None` for what was not measured or is not comparable."""
    now = report.assessment.measurement
    was = None if report.stored is None else report.stored.acceptance
    stored_speedup = None if report.stored is None else report.stored.speedup
    speedup = now.speedup
    return {
        "acceptance_rate": {
            **_both(now.acceptance_rate, was and was.rate),
            "floor": report.rate and report.rate.floor,
        },
        "mean_acceptance_length": _both(
            now.mean_acceptance_length, was and was.mean_acceptance_length
        ),
        "acceptance_rate_per_pos": _both(now.acceptance_rate_per_pos, was and _per_pos(was)),
        "drafts_per_output_token": _both(
            now.drafts_per_output_token, was and was.drafts_per_output_token
        ),
        "tokens_per_step": _both(now.tokens_per_step, was and was.tokens_per_step),
        "speedup": {
            **_both(speedup and speedup.value, stored_speedup and stored_speedup.value),
            "floor": report.verdicts["speedup"].floor,
        },
        "step_cost_ratio": _both(
            speedup and speedup.step_cost_ratio,
            stored_speedup and stored_speedup.speculative_step_ms / stored_speedup.baseline_step_ms,
        ),
    }


def _both(now: Any, stored: Any) -> dict[str, Any]:
    return {"now": now, "stored": stored}


def _per_pos(stored: StoredAcceptance) -> tuple[float, ...] | None:
    """By position over all prompts; `None` where some were not counted by themselves."""
    counted = [each.drafts for each in stored.prompts if each.drafts is not None]
    if not counted or len(counted) < len(stored.prompts):
        return None
    return total(counted).acceptance_rate_per_pos


def _prompt(report: WorkloadReport, prompt: Prompt) -> dict[str, Any]:
    return {
        "id": prompt.id,
        "line": prompt.line,
        "request": prompt.request,
        "json_schema": prompt.json_schema,
        "sql": None if prompt.sql is None else asdict(prompt.sql),
        "is_refused": prompt.is_refused,
        "figures": _prompt_figures(report, prompt.id),
    }


def _prompt_figures(report: WorkloadReport, prompt_id: str) -> dict[str, Any] | None:
    """What is known of one prompt by itself; `None` for one that was not answered."""
    measurement, runs = report.assessment.measurement, report.assessment.runs
    own = next((each for each in measurement.prompts if each.id == prompt_id), None)
    if own is None:
        return None
    was = () if report.stored is None else report.stored.acceptance.prompts
    stored = next((each.drafts for each in was if each.id == prompt_id), None)
    times = prompt_times(runs, prompt_id) if report.assessment.workload.gated else None
    return {
        "acceptance_rate": _both(_rate(own.drafts), _rate(stored)),
        "mean_acceptance_length": own.drafts and own.drafts.mean_acceptance_length,
        "num_draft_tokens": own.drafts and own.drafts.num_draft_tokens,
        "num_accepted_tokens": own.drafts and own.drafts.num_accepted_tokens,
        "num_output_tokens": own.num_output_tokens,
        "speedup": times and times.speedup,
        "baseline_ms": times and times.baseline_ms,
        "speculative_ms": times and times.speculative_ms,
    }


def _rate(drafts: DraftCounters | None) -> float | None:
    return None if drafts is None else drafts.acceptance_rate
