"""Properties for JUnit files: what is known, in values that any serialiser carries."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from pytest_specdec.checks.finding import Finding
from pytest_specdec.known_defects import KnownDefect
from pytest_specdec.report.properties import (
    check_properties,
    item_properties,
    metric_properties,
    point_properties,
    suite_properties,
)
from pytest_specdec.workload import METRICS, Metric
from tests.docs.test_reference import rows
from tests.measured import speedup
from tests.measured_gains import gained, with_nothing
from tests.report.reported import profile_report, workload_report

DEFECT = KnownDefect(check="speedup", workload="sql", versions=">=1", reason="slow")
FINDING = Finding(kind="divergence", prompt_id="one", facts=("a fact",))
FULL = {
    "now": 1.0,
    "low": 0.9,
    "high": 1.1,
    "stored": 1.2,
    "floor": 1.1,
    "smallest_drop": 0.1,
}


@pytest.mark.parametrize("metric", METRICS)
def test_values_are_strings_and_finite_numbers(metric: Metric) -> None:
    facts: dict[str, Any] = {metric: {**FULL, "high": math.inf, "low": 2 / 3}}
    report = workload_report(**facts)
    told = metric_properties(report, metric)
    assert json.loads(json.dumps(told, allow_nan=False)) == [[*each] for each in told]
    assert {type(value) for _, value in told} <= {str, int, float}
    assert dict(told)["specdec_low"] == 0.666667
    assert "specdec_high" not in dict(told)


def test_what_is_not_there_has_no_property() -> None:
    report = workload_report(rate=None, drafts=None)
    names = dict(metric_properties(report, "acceptance"))
    assert names == {
        "specdec_verdict": "passed",
        "specdec_figure": "acceptance rate",
        "specdec_tokens_per_step": 2.5,
    }
    assert check_properties(None, None) == []


def test_a_metric_s_known_defect_is_told() -> None:
    report = workload_report(known={("speedup", None): DEFECT})
    told = dict(metric_properties(report, "speedup"))
    assert told["specdec_known_defect"] == "known defect of vLLM >=1: slow"
    assert "specdec_known_defect" not in dict(metric_properties(report, "acceptance"))


def test_a_point_s_gain_interval_and_answer() -> None:
    told = dict(point_properties(gained(in_flight=4, temperature=0.0, high=math.inf, gain=2 / 3)))
    assert told["specdec_answer"] == "gains"
    assert (told["specdec_in_flight"], told["specdec_temperature"]) == (4, 0.0)
    assert (told["specdec_gain"], told["specdec_low"]) == (0.666667, 1.8)
    assert not told.keys() & {"specdec_high", "specdec_context_tokens", "specdec_expected"}
    assert point_properties(with_nothing().points[0]) == [
        ("specdec_answer", "unmeasured"),
        ("specdec_in_flight", 1),
    ]


def test_profiles_stand_side_by_side_and_say_the_same_once() -> None:
    one = profile_report(versions={"vllm": "0.32.0", "driver": None})
    other = replace(one, profile=replace(one.profile, name="slow"), versions={"vllm": "0.33.0"})
    assert dict(suite_properties([one, other])) == {
        "specdec_profiles": "fast, slow",
        "specdec_models": "org/target",
        "specdec_hardware": str(one.hardware),
        "specdec_vllm": "0.32.0, 0.33.0",
    }
    assert suite_properties([]) == []


def test_the_page_has_every_property_and_no_other() -> None:
    full = workload_report(acceptance=FULL, speedup=FULL, measured={"speedup": speedup(1.5)})
    told = [
        item_properties(profile="fast", workload="sql", subject=("json", "a"), vllm_version="1"),
        check_properties(FINDING, DEFECT),
        *(metric_properties(full, metric) for metric in METRICS),
        point_properties(
            gained(context_tokens=64, temperature=0.5, expected=2.5, expected_verified=2.2)
        ),
    ]
    names = {name for each in told for name, _ in each}
    page = rows("guides/ci.md", "property")
    assert (len(page), {*page}) == (len(names), names)
    named = ("vllm", "torch", "python", "cuda", "driver", "baseline_vllm")
    versions = dict.fromkeys(named, "1")
    of_suite = dict(suite_properties([profile_report(versions=versions, engines={})]))
    assert {*rows("guides/ci.md", "suite property")} == of_suite.keys()
