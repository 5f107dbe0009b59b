"""The JUnit file: what Jenkins and GitLab read of it, and that no answer can spoil it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree as ET

import pytest

from tests.fake_engine.project import FAST, Project, Result

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
# Attributes and children that readers know: pytest's `xunit2`, with properties of test cases.
KNOWN: Mapping[str, tuple[set[str], set[str]]] = {
    "testsuites": ({"name"}, {"testsuite"}),
    "testsuite": (
        {"name", "errors", "failures", "skipped", "tests", "time", "timestamp", "hostname"},
        {"properties", "testcase"},
    ),
    "testcase": (
        {"classname", "name", "time"},
        {"properties", "failure", "error", "skipped"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "failure": ({"message"}, set()),
    "error": ({"message"}, set()),
    "skipped": ({"type", "message"}, set()),
}
ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(project: Project, *arguments: str) -> tuple[Result, ET.Element]:
    """One session, and its one test suite, whose shape is checked."""
    result = project.run("suites", "--junitxml=junit.xml", *arguments)
    root = ET.parse(project.folder / "junit.xml").getroot()
    for each in root.iter():
        attributes, children = KNOWN[each.tag]
        assert {*each.keys()} <= attributes
        assert {child.tag for child in each} <= children
        assert not any(ILLEGAL.search(text) for text in (each.text or "", *each.attrib.values()))
    (suite,) = root
    return result, suite


def case(suite: ET.Element, name: str) -> ET.Element:
    (found,) = [each for each in suite.iter("testcase") if each.get("name") == name]
    return found


def properties(element: ET.Element) -> dict[str | None, str | None]:
    """Its own; each name once."""
    own = element.findall("properties/property")
    told = {each.get("name"): each.get("value") for each in own}
    assert len(told) == len(own)
    return told


@pytest.fixture
def recorded(project: Project) -> Project:
    return project.workload(
        "code", EXACT, {"id": "two", "content": "ANSWER: " + "two" * 12}
    ).record()


COMMON = {"specdec_workload": "code", "specdec_profile": "fast", "specdec_vllm": "0.32.0"}


def test_metrics_tell_their_figures(recorded: Project) -> None:
    _, suite = junit(recorded)
    assert properties(case(suite, "acceptance")) == {
        "specdec_check": "acceptance",
        **COMMON,
        "specdec_verdict": "passed",
        "specdec_figure": "acceptance rate",
        "specdec_now": "0.75",
        "specdec_stored": "0.75",
        "specdec_floor": "0.735",
        "specdec_smallest_fall": "0.02",
        "specdec_acceptance_rate": "0.75",
        "specdec_acceptance_rate_stored": "0.75",
        "specdec_acceptance_rate_floor": "0.735",
        "specdec_mean_acceptance_length": "4.0",
        "specdec_tokens_per_step": "3.25",
    }
    speedup = properties(case(suite, "speedup"))
    assert speedup.pop("specdec_smallest_fall") == "0.05"
    assert speedup == {
        "specdec_check": "speedup",
        **COMMON,
        "specdec_verdict": "passed",
        "specdec_figure": "speedup",
        "specdec_now": "3.25",
        "specdec_low": "3.25",
        "specdec_high": "3.25",
        "specdec_stored": "3.25",
        "specdec_floor": "3.0875",
        "specdec_baseline_tokens_per_s": "100.0",
        "specdec_speculative_tokens_per_s": "325.0",
        "specdec_step_cost_ratio": "1.0",
        "specdec_passes": speedup["specdec_passes"],
    }


def test_what_is_not_known_has_no_property(project: Project) -> None:
    _, suite = junit(project.workload("code", EXACT))
    told = properties(case(suite, "acceptance"))
    assert told["specdec_verdict"] == "no stored baseline"
    assert not {"specdec_stored", "specdec_floor", "specdec_low"} & told.keys()
    assert "inf" not in properties(case(suite, "speedup")).values()


def test_numbers_that_become_the_stored_ones_are_so_told(project: Project) -> None:
    _, suite = junit(project.workload("code", EXACT), "--update-baselines")
    for metric in ("acceptance", "speedup"):
        assert properties(case(suite, metric))["specdec_verdict"] == "stored"


def test_checks_tell_what_they_are_about_and_found(recorded: Project) -> None:
    recorded.fake(speculative={"diverge": {"prompt": "two", "at": 3}})
    _, suite = junit(recorded)
    about = {"specdec_check": "identical", **COMMON}
    assert properties(case(suite, "identical[one]")) == {**about, "specdec_about": "one"}
    failed = case(suite, "identical[two]")
    assert properties(failed) == {
        **about,
        "specdec_about": "two",
        "specdec_finding": "divergence",
    }
    (failure,) = failed.findall("failure")
    first = "divergence: `two`\n"
    assert failure.get("message", "").startswith(f"Failed: {first}")
    assert (failure.text or "").startswith(first)
    assert failed.get("classname") == "suites.code.jsonl.fast"
    assert properties(case(suite, "counts")) == {**COMMON, "specdec_check": "counts"}


def test_a_failed_metric_says_in_its_first_line_why(recorded: Project) -> None:
    recorded.fake(accepted=2)
    _, suite = junit(recorded)
    told = case(suite, "acceptance")
    assert properties(told)["specdec_verdict"] == "failed"
    (failure,) = told.findall("failure")
    first = "failed: acceptance rate of `code`: 0.5 is below 0.735"
    assert failure.get("message", "").splitlines()[0] == f"Failed: {first}"
    assert (failure.text or "").splitlines()[0] == first


def test_a_known_defect_is_told(project: Project) -> None:
    defect = {"check": "counts", "workload": "code", "versions": ">=0.1", "reason": "it miscounts"}
    project.file("specdec.toml", _toml_with(defect)).fake(speculative={"extra_usage": 1})
    _, suite = junit(project.workload("code", EXACT))
    told = case(suite, "counts")
    assert properties(told)["specdec_known_defect"] == "known defect of vLLM >=0.1: it miscounts"
    assert properties(told)["specdec_finding"] == "miscounted"
    (skipped,) = told.findall("skipped")
    assert skipped.get("message", "").startswith("known defect of vLLM >=0.1: it miscounts\n")


def _toml_with(defect: Mapping[str, str]) -> str:
    keys = {"device": "cpu", "model": "model"}
    return "\n".join(
        [
            "[profiles.fast]",
            *(f'{key} = "{value}"' for key, value in keys.items()),
            'speculative_config = { method = "ngram", num_speculative_tokens = 4 }',
            "limits = { max_other_cpu_share = 1.0 }",
            "[[profiles.fast.known_defects]]",
            *(f'{key} = "{value}"' for key, value in defect.items()),
        ]
    )


def test_the_session_tells_what_it_ran_on(recorded: Project) -> None:
    _, suite = junit(recorded)
    told = properties(suite)
    assert " cores" in (told.pop("specdec_hardware") or "")
    assert told == {
        "specdec_profiles": "fast",
        "specdec_models": "model",
        "specdec_vllm": "0.32.0",
        "specdec_torch": "2.13.0",
        "specdec_python": "3.11.9",
    }


def test_several_profiles_stand_side_by_side(project: Project) -> None:
    project.profiles(fast=FAST, other=FAST).workload("code", EXACT)
    _, suite = junit(project, "--specdec-profile=fast", "--specdec-profile=other")
    told = properties(suite)
    assert (told["specdec_profiles"], told["specdec_models"]) == ("fast, other", "model")
    profiles = [
        properties(each)["specdec_profile"]
        for each in suite.iter("testcase")
        if each.get("name") == "speedup"
    ]
    assert profiles == ["fast", "other"]


def test_an_engine_that_dies_tells_what_its_tests_are_about(recorded: Project) -> None:
    result, suite = junit(recorded.fake(on={"generate": "die"}), "-k", "identical")
    assert result.counts == {"error": 2}
    told = case(suite, "identical[two]")
    assert properties(told)["specdec_about"] == "two"
    assert "specdec_finding" not in properties(told)
    (error,) = told.findall("error")
    assert error.get("message", "").startswith('failed on setup with "')


def test_the_test_of_stored_entries_is_told(recorded: Project) -> None:
    recorded.workload("story", "one")
    (recorded.folder / "suites/code.jsonl").unlink()
    _, suite = junit(recorded, "--specdec-strict-baselines")
    told = properties(case(suite, "stored-entries"))
    assert told == {
        "specdec_check": "stored-entries",
        "specdec_profile": "fast",
        "specdec_vllm": "0.32.0",
    }


def test_a_session_without_ours_has_no_property_of_ours(project: Project) -> None:
    project.file("suites/test_own.py", "def test_own(): pass")
    _, suite = junit(project)
    assert properties(suite) == {}
    assert properties(case(suite, "test_own")) == {}


HOSTILE = {
    "null": "a\0b",
    "escape": "\x1b[31mred\x1b[0m",
    "cdata": "]]> <![CDATA[ &lt; </failure> \" '",
    "surrogates": "x\ud800y\udfffz",
    "not a character": "\ufffe\uffff\x7f\x85\u2028",
    "a workflow command": "\n::stop-commands::x\n::error::y\r\n",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_answer_spoils_the_file(project: Project, text: str) -> None:
    """Of an engine that answers so, and of one whose refusal is so worded."""
    prompt = {"id": "j", "max_tokens": 400, "expect": {"json_schema": {"type": "object"}}}
    project.fake(speculative={"answers": {"about j": f"{{{text}"}}, baseline=VALID)
    result, suite = junit(project.workload("code", prompt), "-k", "json[j]")
    assert result.counts == {"failed": 1}
    (failure,) = case(suite, "json[j]").findall("failure")
    assert (failure.get("message") or "").startswith("Failed: invalid JSON: `j`\n")
    project.fake(on={"generate#3": ["request", f"no: {text}"]})
    result, suite = junit(project, "-k", "json[j]")
    assert result.counts == {"error": 1}
    (error,) = case(suite, "json[j]").findall("error")
    assert "no: " in (error.text or "")


VALID = {"answers": {"about j": "{}"}}


def test_a_long_answer_makes_no_long_file(project: Project) -> None:
    schema = {"name": "any", "schema": {"type": "object"}}
    held = {"response_format": {"type": "json_schema", "json_schema": schema}}
    text = "ANSWER: {" + "long " * 10_000
    project.workload("code", {"id": "j", "content": text, "max_tokens": 20_000, **held})
    result, suite = junit(project, "-k", "json[j]")
    assert result.counts == {"failed": 1}
    (failure,) = case(suite, "json[j]").findall("failure")
    assert len(failure.text or "") < 2_000
