"""Under pytest-xdist: one profile, one worker; all else is as without it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.fake_engine.distributed import PROFILES, run, told, two_profiles, without_times
from tests.fake_engine.project import FAST, Project, Result, metrics, wide

pytest.importorskip("xdist")

ONCE_EACH = ["baseline", "baseline", "speculative", "speculative"]
NOT_IMPORTABLE = {"hello": ["unavailable", "ModuleNotFoundError: No module named 'vllm'"]}
NO_VLLM = json.dumps({"on": NOT_IMPORTABLE})


@pytest.fixture
def two(project: Project) -> Project:
    return two_profiles(project)


def assert_same(result: Result, alone: Result, report: Any) -> None:
    # A marked group is part of a test's id with `--dist loadgroup`, whoever's test it is.
    outcomes = {name.replace("@together", ""): word for name, word in result.outcomes.items()}
    assert outcomes == dict(alone.outcomes)
    assert told(result) == told(alone)
    assert result.exit_code == alone.exit_code
    assert sorted(result.loads()) == sorted(alone.loads()) == ONCE_EACH
    assert result.section == alone.section
    assert without_times(result.report) == report


@pytest.mark.parametrize(
    ("num_workers", "arguments"),
    [
        (1, ()),
        (2, ()),
        (3, ()),
        (2, ("--dist=loadscope",)),
        (2, ("--dist=loadfile",)),
        (2, ("--dist=loadgroup",)),
        (2, ("--dist=worksteal", "--no-loadscope-reorder")),
    ],
)
def test_all_is_as_without_workers(
    two: Project, num_workers: int, arguments: Sequence[str]
) -> None:
    alone = run(two, 0, *PROFILES)
    report = without_times(alone.report)
    assert alone.counts == {"failed": 8, "passed": 35}
    assert_same(run(two, num_workers, *PROFILES, *arguments), alone, report)


def test_junit_says_what_it_says_without_workers(two: Project) -> None:
    said = []
    for count in (0, 2):
        run(two, count, *PROFILES, f"--junitxml={two.folder}/junit.xml")
        root = ET.parse(two.folder / "junit.xml").getroot()
        names = [(each.get("classname"), each.get("name")) for each in root.iter("testcase")]
        properties = [
            [(each.get("name"), each.get("value")) for each in found]
            for found in root.iter("properties")
        ]
        said.append((sorted(map(str, names)), sorted(map(str, properties))))
    assert said[0] == said[1]
    assert len(said[0][0]) == 43
    assert sum("specdec_vllm" in each for each in said[0][1]) > 36


def test_a_selection_of_one_profile_reports_both(two: Project) -> None:
    arguments = (*PROFILES, "-k", "code and other")
    alone = run(two, 0, *arguments)
    report = without_times(alone.report)
    result = run(two, 2, *arguments)
    assert result.outcomes == alone.outcomes
    assert sorted(result.loads()) == ["baseline", "speculative"]
    assert without_times(result.report) == report
    assert [len(each["workloads"]) for each in report["profiles"]] == [0, 1]


def test_tests_of_nobody_are_given_out_one_by_one(two: Project) -> None:
    two.file(
        "suites/test_slow.py",
        "import os, pathlib, pytest, time\n"
        "@pytest.mark.parametrize('number', range(8))\n"
        "def test_slow(number):\n"
        "    time.sleep(0.05)\n"
        "    pathlib.Path(__file__).with_name(f'pid-{os.getpid()}').touch()\n",
    )
    (two.folder / ".specdec/report.json").unlink()
    result = run(two, 3, "-k", "test_slow")
    assert result.counts == {"passed": 8}
    assert len([*two.folder.glob("suites/pid-*")]) > 1
    assert result.commands == []
    assert not (two.folder / ".specdec/report.json").exists()


def test_what_is_going_on_is_told_by_each_worker(two: Project) -> None:
    lines = run(two, 2, *PROFILES).lines
    for name in ("fast", "other"):
        (header,) = [line for line in lines if f"profile {name}; vLLM" in line]
        worker = header.split()[1]
        assert header.startswith(f"specdec: {worker} profile {name}; vLLM 0.32.0, torch 2.13.0; ")
        assert f"specdec: {worker} loading the baseline engine" in lines
    assert all(line.startswith("specdec: ") for line in lines if "specdec: " in line)
    assert "specdec: " not in run(two, 2, *PROFILES, "-q").text


def test_the_controlling_process_stores_numbers(two: Project) -> None:
    files = [two.baselines_file(name) for name in ("fast", "other")]
    alone = run(two, 0, *PROFILES, "--update-baselines")
    stored = [path.read_text() for path in files]
    assert [len(two.stored(name)["workloads"]) for name in ("fast", "other")] == [3, 3]
    for path in files:
        path.unlink()
    result = run(two, 2, *PROFILES, "--update-baselines")
    assert result.exit_code == alone.exit_code == 0
    assert [path.read_text() for path in files] == stored
    assert sum("stored baselines written: " in line for line in result.section) == 2
    # What is there is kept, and gated.
    two.fake(accepted=2)
    result = run(two, 2, *PROFILES, "--update-baselines=new")
    assert result.counts["failed"] == 2 * 3 * 2
    assert [path.read_text() for path in files] == stored


def test_what_may_not_be_stored_is_refused(two: Project) -> None:
    before = two.baselines_file("other").read_text()
    two.fake(speculative={"diverge": {"prompt": "about two", "at": 3}})
    alone = run(two, 0, *PROFILES, "--update-baselines", "-k", "code")
    result = run(two, 2, *PROFILES, "--update-baselines", "-k", "code")
    assert result.exit_code == alone.exit_code == 1
    assert (result.outcomes, told(result)) == (alone.outcomes, told(alone))
    assert result.section == alone.section
    assert sum("code: not stored: " in line for line in result.section) == 2
    assert two.baselines_file("other").read_text() == before


def test_an_update_that_is_refused_though_all_tests_pass_fails_the_session(two: Project) -> None:
    two.fake(speculative={"diverge": {"prompt": "about two", "at": 3}})
    result = run(two, 2, *PROFILES, "--update-baselines", "-k", "code and identical and one")
    assert (result.exit_code, result.counts) == (1, {"passed": 2})
    assert sum("code: not stored: " in line for line in result.section) == 2


def test_entries_that_no_test_asks_for(two: Project) -> None:
    (two.folder / "suites/code.jsonl").unlink()
    two.file("suites/test_own.py", "")
    arguments = (*PROFILES, "--specdec-strict-baselines", "-k", "story or stored-entries")
    alone, result = run(two, 0, *arguments), run(two, 2, *arguments)
    assert (result.outcomes, told(result)) == (alone.outcomes, told(alone))
    assert result.section == alone.section
    assert "stored, but no test asked for: code" in result.section
    assert result.outcomes["specdec.toml::other::stored-entries"] == "failed"


@pytest.mark.parametrize(
    ("files", "arguments", "environment", "first"),
    [
        ({"specdec.toml": "[profiles.fast]\n"}, (), {}, "`specdec.toml`: "),
        ({"specdec.toml": "[profiles.fast]\n"}, PROFILES, {}, "`specdec.toml`: "),
        ({}, ("--specdec-profile=fats",), {}, "no profile `fats` in `specdec.toml`"),
        ({}, ("--update-baselines",), {"CI": "1"}, "`--update-baselines` in a CI environment"),
        ({}, PROFILES, {"FAKE_ENGINE": NO_VLLM}, "vLLM cannot be imported under: "),
        ({}, ("--dist=each",), {}, "all tests of a profile run on one worker, and"),
    ],
)
def test_what_is_missing_is_one_error(
    two: Project,
    files: dict[str, str],
    arguments: Sequence[str],
    environment: dict[str, str],
    first: str,
) -> None:
    for path, text in files.items():
        two.file(path, text)
    result = run(two.env(**environment), 2, *arguments)
    assert (result.exit_code, result.outcomes) == (4, {})
    assert result.errors[0].startswith(f"ERROR: {first}")
    assert result.text.count(first) == 1
    assert "INTERNALERROR" not in result.text
    assert not result.loads()


def test_without_the_file_of_profiles_there_is_one_error(project: Project) -> None:
    project.workload("code", "one")
    (project.folder / "specdec.toml").unlink()
    result = run(project, 2)
    assert (result.exit_code, result.outcomes) == (4, {})
    assert result.errors[0].startswith("ERROR: no `specdec.toml` in: ")
    assert result.text.count("no `specdec.toml`") == 1


def test_without_vllm_and_without_a_gate_tests_skip(two: Project) -> None:
    two.fake(on=NOT_IMPORTABLE)
    alone, result = run(two, 0), run(two, 2)
    assert result.exit_code == 0
    assert result.outcomes == alone.outcomes
    assert told(result) == told(alone)
    assert result.counts == {"passed": 3, "skipped": 20}


def test_an_engine_that_dies_is_told_as_without_workers(two: Project) -> None:
    two.fake(speculative={"on": {"generate#6": "die"}})
    alone, result = run(two, 0, *PROFILES), run(two, 2, *PROFILES)
    assert (result.exit_code, result.outcomes) == (alone.exit_code, alone.outcomes)
    assert told(result) == told(alone)
    assert "error" in result.counts


def test_a_profile_that_cannot_start_leaves_the_other_alone(two: Project) -> None:
    unknown = {"load": ["config", "this vLLM does not know `dtpye` in `engine_args`"]}
    fake = {"FAKE_ENGINE": json.dumps({"on": unknown})}
    two.profiles(fast=FAST, other={**FAST, "env": fake})
    alone, result = run(two, 0, *PROFILES), run(two, 2, *PROFILES)
    assert (result.exit_code, result.outcomes) == (alone.exit_code, alone.outcomes)
    assert told(result) == told(alone)
    assert result.counts["error"] == 20


def test_a_workload_that_cannot_be_read_stops_all(two: Project) -> None:
    two.file("suites/broken.jsonl", "{")
    result = run(two, 2, *PROFILES)
    assert (result.exit_code, result.outcomes) == (2, {})
    assert "errors during collection: 1" in result.text
    assert not result.loads()
    result = run(two, 2, *PROFILES, "--continue-on-collection-errors")
    assert result.exit_code == 1
    assert sorted(result.loads()) == ONCE_EACH


def test_one_worker_and_one_profile(project: Project) -> None:
    result = run(project.workload("code", "one"), 2)
    assert result.exit_code == 0
    assert result.outcomes == {
        "code.jsonl::fast::identical[one]": "passed",
        **wide("code"),
        **metrics("code", "skipped"),
    }


def test_recordings_are_made_and_judged_by_workers(two: Project) -> None:
    alone = run(two, 0, *PROFILES)
    report = without_times(alone.report)
    result = run(two, 2, *PROFILES, "--specdec-record=kept")
    assert_same(result, alone, report)
    assert "specdec: recorded to: kept" in result.lines
    assert sorted(path.name for path in (two.folder / "kept").iterdir()) == ["fast", "other"]
    arguments = (*PROFILES, "--specdec-replay=kept", "-k", "not test_own.py")
    alone, result = run(two, 0, *arguments), run(two, 2, *arguments)
    assert (result.exit_code, result.outcomes) == (alone.exit_code, alone.outcomes)
    assert told(result) == told(alone)
    assert result.section == alone.section
    assert "specdec: replayed from: kept" in result.lines
    assert result.commands == []
