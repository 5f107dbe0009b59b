"""Tests of a user's own in the report files, in a job's annotations and in the JUnit file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.fake_engine.project import FAST, Project, Result

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
TESTS = """
import pytest

pytestmark = pytest.mark.specdec("code.jsonl")

@pytest.fixture
def broken(runs): raise RuntimeError("no such thing")

@pytest.fixture
def left_open(runs):
    yield
    raise RuntimeError("not closed")

def test_passes(runs): assert len(runs.speculative.generations) == 1
def test_fails(runs):
    assert not runs.speculative.generations, "answers:\\n1"
def test_stops(runs): pytest.fail("two\\nlines", pytrace=False)
def test_cannot_be_set_up(broken): pass
def test_cannot_be_cleaned_up(left_open): pass
def test_asks_for_too_much(runs, nowhere): pass
def test_skips(runs): pytest.skip("not today")
@pytest.mark.xfail(reason="known")
def test_xfails(runs): assert False
@pytest.mark.xfail(reason="known", strict=False)
def test_xpasses(runs): pass
def test_of_another(): assert False
def test_without_a_profile(workload): assert False
"""
EXPECTED = {
    "passes": ("passed", None),
    "fails": ("failed", "AssertionError: answers:"),
    "stops": ("failed", "two"),
    "cannot_be_set_up": ("error", "RuntimeError: no such thing"),
    "cannot_be_cleaned_up": ("error", "RuntimeError: not closed"),
    "asks_for_too_much": ("error", "fixture 'nowhere' not found"),
    "skips": ("skipped", "not today"),
    "xfails": ("xfailed", "known"),
    "xpasses": ("xpassed", None),
}


@pytest.fixture
def own(project: Project) -> Project:
    project.profiles(fast=FAST, other=FAST).workload("code", EXACT)
    return project.file("suites/test_own.py", TESTS)


def listed(result: Result) -> dict[str, list[Mapping[str, Any]]]:
    return {each["profile"]["name"]: each["own_tests"] for each in result.report["profiles"]}


def expected(profile: str) -> list[Mapping[str, Any]]:
    return [
        {
            "node_id": f"suites/test_own.py::test_{name}[{profile}]",
            "workload": "code",
            "outcome": outcome,
            "message": message,
        }
        for name, (outcome, message) in EXPECTED.items()
    ]


def test_they_stand_under_their_profile(own: Project) -> None:
    result = own.run("suites", "--specdec-profile=fast", "--specdec-profile=other")
    assert listed(result) == {name: expected(name) for name in ("fast", "other")}
    assert result.report["verdict"] == "error"
    for name in ("report.md", "report.html"):
        text = (own.folder / ".specdec" / name).read_text()
        assert "Tests of your own" in text
        assert "no such thing" in text


def test_under_xdist_they_are_the_same(own: Project) -> None:
    pytest.importorskip("xdist")
    profiles = ("--specdec-profile=fast", "--specdec-profile=other")
    result = own.run("suites/test_own.py", *profiles, "-p", "xdist.plugin", "-n2")
    assert listed(result) == {name: expected(name) for name in ("fast", "other")}


def test_without_any_workload_they_are_reported_too(own: Project) -> None:
    own.file("suites/test_own.py", "def test_role(baseline_engine): assert not 'known'\n")
    result = own.run("suites/test_own.py")
    (told,) = listed(result)["fast"]
    assert (told["workload"], told["outcome"]) == (None, "failed")
    assert result.report["verdict"] == "failed"
    assert result.section[-1].startswith("report: .specdec/report.json")


def test_a_long_line_is_cut(own: Project) -> None:
    own.file(
        "suites/test_own.py",
        "import pytest\ndef test_long(engine_pair): pytest.fail('x' * 9999, pytrace=False)\n",
    )
    (told,) = listed(own.run("suites/test_own.py"))["fast"]
    assert told["message"] == "x" * 500 + "..."


def test_what_fails_is_annotated_at_its_line(own: Project) -> None:
    own.file(".git/HEAD", "").env(GITHUB_ACTIONS="true")
    result = own.run("suites/test_own.py", "--specdec-profile=fast")
    lines = [line for line in result.lines if line.startswith("::")]
    start = "::error file=suites/test_own.py,line="
    assert [line.removeprefix(start).partition("%0Aassert not")[0] for line in lines] == [
        "18,title=test_cannot_be_set_up[fast]::RuntimeError: no such thing",
        "19,title=test_cannot_be_cleaned_up[fast]::RuntimeError: not closed",
        "20,title=test_asks_for_too_much[fast]::fixture 'nowhere' not found",
        "15,title=test_fails[fast]::AssertionError: answers:%0A  1",
        "17,title=test_stops[fast]::two%0Alines",
    ]


def test_an_answer_in_a_failure_cannot_speak_for_the_job(own: Project) -> None:
    text = "{\n::error::y\r\n\x1b[31m\0%0A"
    own.env(GITHUB_ACTIONS="true").fake(
        baseline={"answers": {"abc": text}}, speculative={"answers": {"abc": text}}
    )
    own.file(
        "suites/test_own.py",
        "import pytest\n@pytest.mark.specdec('code.jsonl')\n"
        "def test_own(runs): pytest.fail(runs.speculative.generations[0].text, pytrace=False)\n",
    )
    result = own.run("suites/test_own.py", "--tb=no")
    (line,) = [line for line in result.lines if line.startswith("::")]
    assert line.startswith("::error file=suites/test_own.py,line=2,title=test_own[fast]::{%0A::er")
    assert r"\x1b[31m" in line
    assert "%250A" in line


def test_junit_has_profile_and_workload(own: Project) -> None:
    own.run("suites/test_own.py", "--specdec-profile=fast", "--junitxml=junit.xml")
    told = {
        case.get("name"): {
            each.get("name"): each.get("value") for each in case.findall("properties/property")
        }
        for case in ET.parse(own.folder / "junit.xml").getroot().iter("testcase")
    }
    both = {"specdec_profile": "fast", "specdec_workload": "code"}
    assert all(told[f"test_{name}[fast]"] == both for name in EXPECTED)
    assert told["test_without_a_profile"] == {"specdec_workload": "code"}
    own.file("suites/test_own.py", "def test_role(engine_pair): pass\ndef test_plain(): pass\n")
    own.run("suites/test_own.py", "--junitxml=junit.xml")
    text = (own.folder / "junit.xml").read_text()
    assert text.count('name="specdec_profile" value="fast"') == 1
    assert "specdec_workload" not in text
