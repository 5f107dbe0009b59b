"""What a session says of itself: header, progress, summary and `report.json`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from pytest_specdec.assessment import assess
from pytest_specdec.conditions import disturbances, together
from pytest_specdec.family import Case, judge_family
from pytest_specdec.floors import Rules, looks_of
from pytest_specdec.generation import RunPair
from pytest_specdec.measurement import measure
from pytest_specdec.profile import read_profiles
from pytest_specdec.stored_baseline import StoredBaseline
from pytest_specdec.workload import read_workload
from tests.fake_engine.project import FAST, Project

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
JSON = {
    "id": "json",
    "content": "ANSWER: {}",
    "expect": {"json_schema": {"type": "object"}},
}


@pytest.fixture
def recorded(project: Project) -> Project:
    project.fake(versions={"vllm": "0.31.0"})
    return project.workload("code", EXACT, JSON).workload("story", EXACT).record().fake()


def test_the_header_names_what_is_gated(recorded: Project) -> None:
    key = recorded.baselines_file().parent.name
    (line,) = [each for each in recorded.run("suites").lines if each.startswith("specdec: profile")]
    assert line.startswith("specdec: profile fast; vLLM 0.32.0, torch 2.13.0; ")
    instruction_set = json.loads(recorded.baselines_file().read_text())["hardware"][
        "instruction_set"
    ]
    assert line.endswith(f" cores, {instruction_set}; stored baselines: baselines/{key}")


def test_the_header_names_other_hardware_that_has_stored_baselines(recorded: Project) -> None:
    path = recorded.baselines_file()
    text, stored = path.read_text(), f"stored baselines: baselines/{path.parent.name}"
    recorded.file("baselines/another-machine/fast.json", text)
    assert any(line.endswith(stored) for line in recorded.run("suites").lines)
    path.unlink()
    recorded.file("baselines/nvidia-b200-x1/other.json", text)
    lines = recorded.run("suites").lines
    assert any(
        line.endswith(f"{stored} (none for this profile; there are for: another-machine)")
        for line in lines
    )
    recorded.file("baselines/nvidia-b200-x1/fast.json", text)
    told = "(none for this profile; there are for: another-machine, nvidia-b200-x1)"
    assert told in recorded.run("suites").text


def test_the_header_where_nothing_is_stored(project: Project) -> None:
    lines = project.workload("code", EXACT).run("suites").lines
    (line,) = [each for each in lines if each.startswith("specdec: profile")]
    assert line.endswith(" (none for this profile)")


def test_progress_is_a_line_for_each_phase(recorded: Project) -> None:
    lines = recorded.run("suites", "-k", "code").lines
    told = [each.partition("specdec: ")[2] for each in lines if "specdec: " in each]
    assert told[0] == "importing vLLM"
    assert told[2:] == [
        "code: up to 32 passes over 2 prompts, 1 in flight",
        "loading the baseline engine",
        "baseline engine loaded in 1.5 s",
        "loading the speculative engine",
        "speculative engine loaded in 1.5 s",
    ]


def test_quiet_sessions_show_no_progress(recorded: Project) -> None:
    result = recorded.run("suites", "-q")
    assert not any("loading the" in line for line in result.lines)


def test_the_summary(recorded: Project) -> None:
    section = recorded.run("suites").section
    assert section == [
        "workload  identical  valid   acceptance rate now / stored / floor  mean acceptance length"
        "  speedup              fall that fails: acceptance / speedup  verdict",
        "code      2 of 2     1 of 1  0.750 / 0.750 / 0.735                 4.00                  "
        "  2.50 (2.50 to 2.50)  2% / 5%                                passed",
        "story     1 of 1     -       0.750 / 0.750 / 0.735                 4.00                  "
        "  3.25 (3.25 to 3.25)  2% / 5%                                passed",
        "changed since the numbers were stored: vllm 0.31.0 -> 0.32.0",
        "  code: acceptance rate 0.75 -> 0.75, speedup 2.5 -> 2.5",
        "  story: acceptance rate 0.75 -> 0.75, speedup 3.25 -> 3.25",
        "engines started: baseline 1, speculative 1; loaded in: baseline 1.5 s, speculative 1.5 s",
        "report: .specdec/report.json, .specdec/report.html, .specdec/report.md",
    ]


def test_the_summary_tells_how_the_engines_differ(recorded: Project) -> None:
    recorded.fake(speculative={"config": {"max_num_seqs": 8}})
    assert (
        "engines differ in (baseline / speculative): max_num_seqs 16 / 8"
        in recorded.run("suites").section
    )


def test_the_summary_of_several_profiles(recorded: Project) -> None:
    recorded.profiles(fast=FAST, other=FAST)
    section = recorded.run(
        "suites", "-k", "story", "--specdec-profile=fast", "--specdec-profile=other"
    ).section
    assert [line for line in section if line.startswith("profile ")] == [
        "profile fast",
        "profile other",
    ]
    assert (
        "hint: record one: `pytest suites --specdec-profile fast --specdec-profile other "
        "--update-baselines`" in section
    )


def test_no_summary_when_nothing_ran(recorded: Project) -> None:
    result = recorded.fake(on={"load": "exit"}).run("suites")
    assert result.section == []
    assert recorded.run("suites", "--collect-only").section == []


def again(workloads: list[Any], recorded: Project) -> list[dict[str, Any]]:
    """The workloads of `report.json` judged again from the runs in it."""
    profile = read_profiles(recorded.folder / "specdec.toml").chosen("fast")
    stored = StoredBaseline.from_json(recorded.stored())
    cases, rest = {}, {}
    for data in workloads:
        name, runs = data["name"], RunPair.from_json(data["runs"])
        workload = read_workload(recorded.folder / f"suites/{name}.jsonl")
        assert runs.to_json() == RunPair.from_json(json.loads(json.dumps(runs.to_json()))).to_json()
        conditions = together(runs.conditions)
        assert conditions is not None
        measurement = measure(workload, runs)
        rules = Rules(
            tolerances=profile.tolerances,
            level=profile.tolerances.false_alarms,
            looks=looks_of(profile),
            update_command="pytest suites --update-baselines",
            disturbances=disturbances(conditions, profile.limits),
        )
        cases[name] = Case(
            measurement=measurement,
            stored=stored.workloads[name],
            rules=rules,
            gated=profile.gated,
        )
        assessment = assess(workload, runs, measurement=measurement)
        rest[name] = {
            "findings": sorted(assessment.findings),
            "num_identical": assessment.num_identical,
            "num_valid": assessment.num_valid,
            "measurement": asdict(measurement),
        }
    verdicts = judge_family(cases, false_alarms=profile.tolerances.false_alarms)
    told = [
        {
            "verdicts": {metric: asdict(each) for metric, each in verdicts[name].items()},
            **rest[name],
        }
        for name in cases
    ]
    as_json: list[dict[str, Any]] = json.loads(json.dumps(told))
    return as_json


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"accepted": 2},
        {"drafts": "none"},
        {"drafts": "engine"},
        {"speculative": {"wall_factors": [1.0, 0.6, 1.6, 0.7, 1.5]}},
        {"speculative": {"diverge": {"prompt": "abc", "at": 3}, "answers": {"{}": "[]"}}},
    ],
)
def test_report_json_can_be_judged_again(recorded: Project, settings: dict[str, Any]) -> None:
    result = recorded.fake(**settings).run("suites")
    (of_profile,) = result.report["profiles"]
    assert result.report["schema_version"] == 4
    assert [each["name"] for each in of_profile["workloads"]] == ["code", "story"]
    assert again(of_profile["workloads"], recorded) == [
        {
            "verdicts": data["verdicts"],
            "findings": sorted([each["check"], each["prompt_id"]] for each in data["findings"]),
            "num_identical": data["num_identical"],
            "num_valid": data["num_valid"],
            "measurement": data["measurement"],
        }
        for data in of_profile["workloads"]
    ]


def test_report_json_says_what_ran(recorded: Project) -> None:
    (data,) = recorded.run("suites").report["profiles"]
    assert data["profile"]["name"] == "fast"
    assert data["versions"]["vllm"] == "0.32.0"
    assert data["stored_versions"]["vllm"] == ["0.31.0"]
    assert data["num_starts"] == {"baseline": 1, "speculative": 1}
    assert data["engines"]["baseline"]["load_s"] == 1.5
    assert data["hardware"]["device"] == "cpu"
    assert (data["unused"], data["update"]) == ([], None)
    assert [each["verdict"] for each in data["workloads"]] == ["passed", "passed"]


def test_one_pair_of_passes_is_null_where_json_has_no_number(project: Project) -> None:
    project.workload("code", EXACT).run("suites")
    text = (project.folder / ".specdec/report.json").read_text()
    assert not any(word in text for word in ("NaN", "Infinity"))


def test_another_folder_for_the_report(recorded: Project) -> None:
    result = recorded.run("suites", "--specdec-report=out/gate")
    assert (
        "report: out/gate/report.json, out/gate/report.html, out/gate/report.md" in result.section
    )
    assert {path.name for path in (recorded.folder / "out/gate/logs").iterdir()} == {
        "fast-baseline.log",
        "fast-speculative.log",
    }
