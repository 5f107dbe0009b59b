"""github-action-benchmark's arrays: one a direction, a number in every entry."""

from __future__ import annotations

import json

from pytest_specdec.imports.imported import ImportedMeasurement
from pytest_specdec.report.action_benchmark import action_benchmark_json
from tests.report.test_flat import RUN


def test_what_is_better_when_bigger() -> None:
    assert json.loads(action_benchmark_json([RUN], better="bigger")) == [
        {
            "name": "fast/sql: acceptance rate",
            "unit": "%",
            "value": 62.5,
            "extra": "125 of 200 draft tokens",
        },
        {"name": "fast/sql: mean acceptance length", "unit": "tokens", "value": 2.25},
        {"name": "fast/sql: output tokens per second", "unit": "tokens/s", "value": 40.0},
        {"name": "fast/sql: speedup", "unit": "x", "value": 1.5},
    ]


def test_what_is_better_when_smaller() -> None:
    assert json.loads(action_benchmark_json([RUN], better="smaller")) == [
        {"name": "fast/sql: mean TTFT", "unit": "ms", "value": 3.0},
        {"name": "fast/sql: median TTFT", "unit": "ms", "value": 2.0},
        {"name": "fast/sql: p99 TTFT", "unit": "ms", "value": 9.0},
        {"name": "fast/sql: median TPOT", "unit": "ms", "value": 1.5},
        {"name": "fast/sql: p99 ITL", "unit": "ms", "value": 8.0},
    ]


def test_what_is_not_known_has_no_entry() -> None:
    nothing = ImportedMeasurement(label="x")
    for text in (
        action_benchmark_json([nothing], better="bigger"),
        action_benchmark_json([nothing], better="smaller"),
    ):
        assert text == "[]\n"
    (told,) = json.loads(
        action_benchmark_json(
            [ImportedMeasurement(label="x", acceptance_rate=0.0)], better="bigger"
        )
    )
    assert told == {"name": "x: acceptance rate", "unit": "%", "value": 0.0}
