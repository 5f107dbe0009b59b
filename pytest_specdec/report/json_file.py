"""`report.json`: everything behind a session's verdicts, so that they can be judged again, and all
that the other reports are made of.

`report.schema.json` is what it holds to; a new key needs a new `SCHEMA_VERSION`. Floor 4.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, time
from pathlib import Path
from typing import Any

from pytest_specdec.report.facts import ProfileReport, overall
from pytest_specdec.report.json_workload import workload_data
from pytest_specdec.report.json_worth_it import worth_it_data

SCHEMA_VERSION = 4


def report_data(reports: Sequence[ProfileReport]) -> dict[str, Any]:
    """What the file holds, as `json.loads` would give it."""
    plain: dict[str, Any] = pure(
        {
            "schema_version": SCHEMA_VERSION,
            "verdict": overall([report.verdict for report in reports]),
            "profiles": [_profile(report) for report in reports],
        }
    )
    return plain


def report_json(data: Mapping[str, Any]) -> str:
    """The file's text."""
    return json.dumps(data, sort_keys=True, allow_nan=False) + "\n"


def _profile(report: ProfileReport) -> dict[str, Any]:
    return {
        "profile": asdict(report.profile),
        "verdict": report.verdict,
        "hardware": asdict(report.hardware),
        "versions": report.versions,
        "stored_versions": report.stored_versions,
        "engines": {role: asdict(facts) for role, facts in report.engines.items()},
        "num_starts": report.num_starts,
        "failure": report.failure,
        "not_run": report.not_run,
        "is_changed": report.is_changed,
        "config_differences": report.config_differences,
        "unused": report.unused,
        "is_unused_failing": report.is_unused_failing,
        "untested": [asdict(each) for each in report.untested],
        "update": None if report.update is None else asdict(report.update),
        "workloads": [workload_data(each) for each in report.workloads],
        "own_tests": [asdict(each) for each in report.own_tests],
        "worth_it": None if report.worth_it is None else worth_it_data(report.worth_it),
    }


def pure(value: Any) -> Any:
    """As JSON has it. An unbounded interval has no number there: it is `null`."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: pure(value[key]) for key in sorted(value)}  # as the file has them
    if isinstance(value, list | tuple):
        return [pure(each) for each in value]
    if isinstance(value, Path | date | time):  # TOML has dates and times
        return str(value)
    return value
