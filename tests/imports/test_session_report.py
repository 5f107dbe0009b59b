"""A session's own `report.json`: each workload's speculative engine."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from pytest_specdec.counters import DraftCounters
from pytest_specdec.report.json_file import SCHEMA_VERSION, report_data, report_json
from pytest_specdec.worth_it import WorthIt
from tests.imports.reading import document, of_json, read_all, refused
from tests.measured_gains import gained
from tests.report.reported import profile_report, workload_report


def report(*names: str, **facts: Any) -> dict[str, Any]:
    workloads = tuple(workload_report(name, **facts) for name in names or ("sql",))
    data: dict[str, Any] = json.loads(
        report_json(report_data([profile_report(workloads=workloads)]))
    )
    return data


def of_workload(**changes: Any) -> dict[str, Any]:
    data = report()
    data["profiles"][0]["workloads"][0]["measurement"].update(changes)
    return data


def test_workloads() -> None:
    runs = read_all(of_json(report("sql", "story"), name="report.json"))
    assert [run.label for run in runs] == ["fast/sql", "fast/story"]
    run = runs[0]
    assert (run.num_drafts, run.num_draft_tokens, run.num_accepted_tokens) == (50, 200, 100)
    assert (run.acceptance_rate, run.mean_acceptance_length) == (0.5, 3.0)
    assert run.num_accepted_tokens_per_pos == (50, 50, 0, 0)
    assert (run.num_output_tokens, run.concurrency) == (160, 1)
    assert (run.ttft.median_ms, run.tpot.median_ms, run.speedup) == (5.0, 2.0, None)


@pytest.mark.parametrize("version", [1, 2, 3, SCHEMA_VERSION])
def test_versions(version: int) -> None:
    assert read_all(of_json({**report(), "schema_version": version}))


def test_points_of_a_session_that_asks_whether_speculation_is_worth_it() -> None:
    points = [
        gained(in_flight=4, temperature=0.0),
        gained(changes={"num_speculative_tokens": 2}, gain=None, acceptance_rate=None),
    ]
    asked = profile_report(workloads=(), worth_it=WorthIt(points=points, answers=(), cost=None))
    first, second = read_all(of_json(json.loads(report_json(report_data([asked])))))
    assert first.label == "fast/sql[in_flight=4,temperature=0]"
    assert (first.acceptance_rate, first.mean_acceptance_length) == (0.625, 2.875)
    assert (first.concurrency, first.speedup, first.num_drafts) == (4, 2.0, None)
    assert second.label == "fast/sql[in_flight=1] num_speculative_tokens 2"
    assert (second.acceptance_rate, second.speedup) == (None, None)


def test_speedup_is_the_mean_over_all_loads() -> None:
    loads = [[math.log(1.0), math.log(4.0)], [math.log(2.0)]]
    (run,) = read_all(of_json(of_workload(speedup={"loads": loads})))
    assert run.speedup == pytest.approx(2.0)


def test_drafts_that_nobody_counted_and_none() -> None:
    (run,) = read_all(of_json(report(drafts=None)))
    assert (run.num_drafts, run.acceptance_rate) == (None, None)
    (run,) = read_all(of_json(report(drafts=DraftCounters())))
    assert (run.num_drafts, run.acceptance_rate, run.mean_acceptance_length) == (0, None, None)


@pytest.mark.parametrize(
    ("data", "fact"),
    [
        ({**report(), "schema_version": 5}, "`schema_version` is 5, and known here: 1, 2, 3, 4"),
        ({"schema_version": 1, "profiles": []}, "holds no workload"),
        ({"schema_version": 1, "profiles": [3]}, "`profiles`, 1 is not a table: 3"),
        (of_workload(speedup={"loads": [["x"]]}), "`loads` are no lists of numbers"),
        (of_workload(speedup={"loads": [[1e6]]}), "`loads` are no lists of numbers"),
        (
            of_workload(concurrency=-1),
            "`profiles`, 1, `workloads`, 1, `measurement`: `concurrency` is below 0",
        ),
    ],
)
def test_what_is_no_report(data: dict[str, Any], fact: str) -> None:
    assert fact in refused(of_json(data))


def test_a_report_that_is_cut_off() -> None:
    message = refused(document(json.dumps(report())[:-100], name="report.json"))
    assert message.startswith("`report.json` is no JSON, or is cut off: ")
