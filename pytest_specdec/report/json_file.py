"""`report.json`: everything behind a session's verdicts, so that they can be judged again.

Floor 4.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pytest_specdec.report.facts import ProfileReport, WorkloadReport

SCHEMA_VERSION = 1


def report_json(reports: Sequence[ProfileReport]) -> str:
    """The file's text."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "profiles": [_profile(report) for report in reports],
    }
    return json.dumps(_finite(data), sort_keys=True, allow_nan=False, default=str) + "\n"


def _profile(report: ProfileReport) -> dict[str, Any]:
    return {
        "profile": asdict(report.profile),
        "hardware": asdict(report.hardware),
        "versions": report.versions,
        "stored_versions": report.stored_versions,
        "engines": {role: asdict(facts) for role, facts in report.engines.items()},
        "num_starts": report.num_starts,
        "failure": report.failure,
        "is_changed": report.is_changed,
        "config_differences": report.config_differences,
        "unused": report.unused,
        "untested": [asdict(each) for each in report.untested],
        "update": None if report.update is None else asdict(report.update),
        "workloads": [_workload(each) for each in report.workloads],
    }


def _workload(report: WorkloadReport) -> dict[str, Any]:
    assessment = report.assessment
    return {
        "name": assessment.workload.name,
        "description": assessment.workload.description,
        "digest": assessment.workload.digest,
        "verdict": report.verdict,
        "gated": list(report.gated),
        "disturbances": list(report.disturbances),
        "num_greedy": assessment.num_greedy,
        "num_identical": assessment.num_identical,
        "num_near_ties": len(assessment.near_ties),
        "near_ties": [asdict(each) for each in assessment.near_ties.values()],
        "num_checked": assessment.num_checked,
        "num_valid": assessment.num_valid,
        "findings": [
            {
                "check": check,
                "about": about,
                "known_defect": str(report.known[check, about])
                if (check, about) in report.known
                else None,
                **asdict(finding),
            }
            for (check, about), finding in assessment.findings.items()
        ],
        "known_defects": [
            {
                "check": check,
                "about": about,
                "versions": defect.versions,
                "reason": defect.reason,
            }
            for (check, about), defect in report.known.items()
        ],
        "unexpected_passes": [asdict(each) for each in report.unseen],
        "missing": [
            {"check": check, "about": about, "reason": reason}
            for (check, about), reason in assessment.missing.items()
        ],
        "verdicts": {name: asdict(each) for name, each in report.verdicts.items()},
        "measurement": asdict(assessment.measurement),
        "runs": assessment.runs.to_json(),
    }


def _finite(value: Any) -> Any:
    """An unbounded interval has no number in JSON: it is `null` there."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
