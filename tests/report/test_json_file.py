"""`report.json`: valid JSON whatever happened, and all that judging again needs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any, NoReturn

import pytest

from pytest_specdec.generation import RunPair
from pytest_specdec.known_defects import KnownDefect
from pytest_specdec.report.facts import ProfileReport
from pytest_specdec.report.json_file import report_data, report_json
from pytest_specdec.report.saved import report_defect
from pytest_specdec.worth_it import WorthIt
from tests.measured import speedup
from tests.measured_gains import EMPTY, all_of, sweep, with_nothing
from tests.report.hostile import HOSTILE
from tests.report.reported import (
    FACTS,
    FINDING,
    TIE,
    own_test,
    profile_report,
    update,
    workload_report,
)
from tests.said import generation, pair, walk

DEFECT = KnownDefect(check="identical", workload="sql", versions="<1", reason="why")
DEFECT_AS_JSON = {
    "check": "identical",
    "workload": "sql",
    "versions": "<1",
    "reason": "why",
    "about": [],
    "kind": [],
}


def refuse(name: str) -> NoReturn:
    raise AssertionError(f"not JSON: {name}")


def written(*reports: ProfileReport) -> Any:
    """What the file holds, which satisfies its schema."""
    data = json.loads(report_json(report_data(reports)), parse_constant=refuse)
    assert report_defect(data) is None
    assert data == report_data(reports)
    return data


def test_the_file_s_frame() -> None:
    two = [profile_report(), profile_report()]
    text, data = report_json(report_data(two)), written(*two)
    assert text.endswith("}\n")
    assert (data["schema_version"], len(data["profiles"])) == (4, 2)
    assert written() == {"schema_version": 4, "verdict": "nothing ran", "profiles": []}
    assert text == report_json(report_data([profile_report(), profile_report()]))


def test_a_profile() -> None:
    other = {**FACTS, "config": {"a": 2, "b": None}}
    (data,) = written(
        profile_report(
            engines={"baseline": FACTS, "speculative": other},
            stored_versions={"vllm": ["0.31.0"]},
            unused=("old",),
            untested=(DEFECT,),
            own_tests=(own_test("failed", message="why"),),
            update=update(path="p", rows=(("sql", "speedup", None, 2.0),), refused={"x": ("why",)}),
        )
    )["profiles"]
    assert data["profile"]["name"] == "fast"
    assert data["hardware"] == {
        "device": "cpu",
        "name": "A CPU",
        "count": 2,
        "facts": {"cores": 2, "instruction_set": "avx2"},
    }
    assert data["config_differences"] == {"a": [1, 2]}
    assert data["stored_versions"] == {"vllm": ["0.31.0"]}
    assert data["unused"] == ["old"]
    assert data["untested"] == [DEFECT_AS_JSON]
    assert data["own_tests"] == [
        {
            "node_id": "test_a.py::test_b[fast]",
            "workload": "sql",
            "outcome": "failed",
            "message": "why",
        }
    ]
    assert data["update"] == {
        "path": "p",
        "rows": [{"workload": "sql", "metric": "speedup", "old": None, "new": 2.0}],
        "refused": {"x": ["why"]},
    }


def test_a_workload() -> None:
    report = workload_report(
        findings={("json", "one"): FINDING, ("identical", "one"): FINDING},
        acceptance={"kind": "failed", "now": 0.4, "reasons": ("why",)},
        disturbances=("others used all of it",),
        near_ties={"two": TIE},
        known={("identical", "one"): DEFECT, ("acceptance", None): DEFECT},
        unseen=(DEFECT,),
        missing={("again", "after-sleep"): "cannot"},
    )
    (data,) = written(profile_report(workloads=(report,)))["profiles"]
    (workload,) = data["workloads"]
    assert (workload["name"], workload["description"], workload["verdict"]) == (
        "sql",
        "about",
        "failed",
    )
    assert workload["digest"] == report.assessment.workload.digest
    assert [each["check"] for each in workload["findings"]] == ["json", "identical"]
    assert workload["findings"][0] == {
        "check": "json",
        "about": "one",
        "known_defect": None,
        "kind": "divergence",
        "prompt_id": "one",
        "facts": ["a fact"],
        "hint": "a hint",
        "severity": "error",
        "role": None,
        "answer": None,
        "position": None,
        "pointer": None,
    }
    assert workload["findings"][1]["severity"] == "warning"
    assert (workload["near_ties"][0]["severity"], workload["near_ties"][0]["about"]) == (
        "note",
        "two",
    )
    assert workload["findings"][1]["known_defect"] == "known defect of vLLM <1: why"
    assert workload["known_defects"] == [
        {"check": check, "about": about, "versions": "<1", "reason": "why"}
        for check, about in (("identical", "one"), ("acceptance", None))
    ]
    assert workload["unexpected_passes"] == [DEFECT_AS_JSON]
    assert workload["missing"] == [
        {"check": "again", "about": "after-sleep", "reason": "cannot"},
    ]
    assert (workload["num_near_ties"], workload["num_identical"]) == (1, 1)
    assert [each["prompt_id"] for each in workload["near_ties"]] == ["two"]
    assert workload["verdicts"]["acceptance"]["reasons"] == ["why"]
    assert workload["gated"] == ["acceptance", "speedup"]
    assert workload["disturbances"] == ["others used all of it"]
    assert RunPair.from_json(workload["runs"]) == report.assessment.runs


def test_an_unbounded_interval_is_null() -> None:
    report = workload_report(speedup={"now": 1.5, "low": 0.0, "high": math.inf})
    (data,) = written(profile_report(workloads=(report,)))["profiles"]
    assert data["workloads"][0]["verdicts"]["speedup"]["high"] is None
    assert data["workloads"][0]["verdicts"]["speedup"]["low"] == 0.0


def test_runs_are_judged_again_by_what_is_no_number_too() -> None:
    report = workload_report()
    answer = generation(logprobs=(math.nan, -math.inf, -0.5))
    runs = pair([walk(answer)], [walk(answer)])
    told = replace(report, assessment=replace(report.assessment, runs=runs))
    (data,) = written(profile_report(workloads=(told,)))["profiles"]
    assert repr(RunPair.from_json(data["workloads"][0]["runs"])) == repr(runs)


def test_the_measurement_keeps_its_parts() -> None:
    assert len(speedup(1.5, 1.6).log_ratios) == 2
    (data,) = written(profile_report())["profiles"]
    measurement = data["workloads"][0]["measurement"]
    assert measurement["drafts"]["num_accepted_tokens"] == 100
    assert measurement["speedup"] is None


def test_a_session_that_asks_whether_speculation_is_worth_it() -> None:
    assert written(profile_report())["profiles"][0]["worth_it"] is None
    (data,) = written(profile_report(workloads=(), worth_it=sweep()))["profiles"]
    told = data["worth_it"]
    assert told["points"][0]["point"] == {
        "in_flight": 1,
        "context_tokens": 128,
        "temperature": None,
    }
    assert told["answers"][0]["break_even"][1] == {
        "context_tokens": 512,
        "text": "about 14 (8 to over 16)",
        "value": 14.0,
        "low": 8,
        "high": None,
    }
    assert [each["best"] for each in told["answers"]] == [
        None,
        None,
        {"num_speculative_tokens": 5},
        None,
    ]
    assert told["cost"]["speculative"]["kv_cache_blocks"] == 1200
    assert told["unmet"] == [*sweep().unmet]


@pytest.mark.parametrize("worth_it", [EMPTY, with_nothing(), all_of(HOSTILE)])
def test_whatever_it_found_is_written(worth_it: WorthIt) -> None:
    written(profile_report(workloads=(), worth_it=worth_it))
