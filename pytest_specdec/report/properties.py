"""Properties of tests and of the whole session, as JUnit files hold them. Floor 4.

Names and values alone: strings, whole and finite numbers, which JSON and pytest-xdist carry. What
is not known has no property. docs/guides/ci.md has the table of the names, held to this by a test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from pytest_specdec.assessment import Subject
from pytest_specdec.checks.finding import Finding
from pytest_specdec.known_defects import KnownDefect
from pytest_specdec.measurement import output_tokens_per_s
from pytest_specdec.report.facts import ProfileReport, WorkloadReport
from pytest_specdec.report.property_names import (
    CHECK,
    KNOWN_DEFECT,
    PROFILE,
    VERDICT,
    WORKLOAD,
)
from pytest_specdec.stored_baseline import rounded
from pytest_specdec.workload import Metric
from pytest_specdec.worth_it import PointGain

Value = str | int | float
Properties = list[tuple[str, Value]]

PREFIX = "specdec_"


def item_properties(
    *, profile: str, workload: str | None, subject: Subject, vllm_version: str | None
) -> Properties:
    """What a test is about, known before the engines have run."""
    check, about = subject
    return _known(
        {
            CHECK: check,
            "specdec_about": about,
            WORKLOAD: workload,
            PROFILE: profile,
            "specdec_vllm": vllm_version,
        }
    )


def check_properties(finding: Finding | None, defect: KnownDefect | None) -> Properties:
    """What a check found, and the defect that explains it."""
    return _known(
        {
            "specdec_finding": None if finding is None else finding.kind,
            KNOWN_DEFECT: None if defect is None else str(defect),
        }
    )


def metric_properties(report: WorkloadReport, metric: Metric) -> Properties:
    """What a metric's verdict was made on, and the figures that stand beside it."""
    verdict, defect = report.verdicts[metric], report.known.get((metric, None))
    figures = _acceptance(report) if metric == "acceptance" else _speedup(report)
    return _known(
        {
            VERDICT: report.word(metric),
            KNOWN_DEFECT: None if defect is None else str(defect),
            "specdec_figure": verdict.metric,
            "specdec_now": verdict.now,
            "specdec_low": verdict.low,
            "specdec_high": verdict.high,
            "specdec_stored": verdict.stored,
            "specdec_floor": verdict.floor,
            "specdec_smallest_fall": verdict.smallest_drop,
            **figures,
        }
    )


def point_properties(point: PointGain) -> Properties:
    """What speculation does for a workload at one point of its sweep, and what it is made of."""
    return _known(
        {
            "specdec_answer": point.answer,
            "specdec_reason": point.reason or None,
            "specdec_in_flight": point.point.in_flight,
            "specdec_context_tokens": point.point.context_tokens,
            "specdec_temperature": point.point.temperature,
            "specdec_num_speculative_tokens": point.num_speculative_tokens,
            "specdec_gain": point.gain,
            "specdec_low": point.low,
            "specdec_high": point.high,
            "specdec_acceptance_rate": point.acceptance_rate,
            "specdec_mean_acceptance_length": point.mean_acceptance_length,
            "specdec_tokens_per_step_ratio": point.tokens_per_step_ratio,
            "specdec_step_cost_ratio": point.step_cost_ratio,
            "specdec_ttft_ratio": point.ttft_ratio,
            "specdec_tpot_ratio": point.tpot_ratio,
        }
    )


def suite_properties(reports: Sequence[ProfileReport]) -> Properties:
    """What the session ran on; several profiles' words stand side by side."""
    return _known(
        {
            "specdec_profiles": _distinct(each.profile.name for each in reports),
            "specdec_models": _distinct(each.profile.model for each in reports),
            "specdec_hardware": _distinct(str(each.hardware) for each in reports),
            **{
                f"{PREFIX}{name}": _distinct(each.versions.get(name) for each in reports)
                for name in ("vllm", "torch", "python", "cuda", "driver", "baseline_vllm")
            },
        }
    )


def _acceptance(report: WorkloadReport) -> Mapping[str, Value | None]:
    rate, measured = report.rate, report.assessment.measurement
    return {
        "specdec_acceptance_rate": None if rate is None else rate.now,
        "specdec_acceptance_rate_stored": None if rate is None else rate.stored,
        "specdec_acceptance_rate_floor": None if rate is None else rate.floor,
        "specdec_mean_acceptance_length": measured.mean_acceptance_length,
        "specdec_tokens_per_step": measured.tokens_per_step,
    }


def _speedup(report: WorkloadReport) -> Mapping[str, Value | None]:
    runs, speedup = report.assessment.runs, report.assessment.measurement.speedup
    return {
        "specdec_baseline_tokens_per_s": output_tokens_per_s(runs.baseline),
        "specdec_speculative_tokens_per_s": output_tokens_per_s(runs.speculative),
        "specdec_step_cost_ratio": None if speedup is None else speedup.step_cost_ratio,
        "specdec_passes": len(runs.speculative.passes),
    }


def _distinct(words: Iterable[str | None]) -> str | None:
    return ", ".join(dict.fromkeys(each for each in words if each)) or None


def _known(values: Mapping[str, Value | None]) -> Properties:
    """Those that are there; an unbounded interval has no number."""
    return [
        (name, rounded(value) if isinstance(value, float) else value)
        for name, value in values.items()
        if value is not None and not (isinstance(value, float) and not math.isfinite(value))
    ]
