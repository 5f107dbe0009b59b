"""Stored baselines: written when asked for, by whole sessions, and never over a doubt."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.fake_engine.project import FAST, Project, metrics

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
DIVERGES = {"diverge": {"prompt": "abc", "at": 3}}


def rates(project: Project) -> dict[str, float]:
    return {
        name: each["acceptance"]["rate"] for name, each in project.stored()["workloads"].items()
    }


@pytest.fixture
def two(project: Project) -> Project:
    return project.workload("code", EXACT).workload("story", "one")


@pytest.fixture
def recorded(two: Project) -> Project:
    """Two workloads stored at a rate of 0.75; now the engine accepts half."""
    return two.record().fake(accepted=2)


def test_recording_passes_and_stores_what_the_next_session_passes_with(two: Project) -> None:
    result = two.run("suites", "--update-baselines")
    assert (result.exit_code, result.counts) == (0, {"passed": 12})
    assert rates(two) == {"code": 0.75, "story": 0.75}
    assert "code: acceptance rate - -> 0.75" in result.section
    assert "code: speedup - -> 3.25" in result.section
    path = two.baselines_file().relative_to(two.folder)
    assert f"stored baselines written: {path}" in result.section
    assert two.run("suites").counts == {"passed": 12}


def test_the_stored_file_says_where_it_comes_from(two: Project) -> None:
    two.fake(versions={"vllm": "0.31.0", "driver": "570.1"}).record()
    stored = two.stored()
    assert stored["profile"] == "fast"
    assert two.baselines_file().parent.name == stored["hardware_key"]
    provenance = stored["workloads"]["code"]["provenance"]
    assert provenance["versions"]["vllm"] == "0.31.0"
    assert (provenance["num_loads"], provenance["num_passes"]) == (1, 16)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", provenance["date"])
    assert list(stored["workloads"]["code"]["acceptance"]["prompts"]) == ["one"]


def test_all_replaces_and_tells_old_and_new(recorded: Project) -> None:
    result = recorded.run("suites", "--update-baselines")
    assert (result.exit_code, result.counts) == (0, {"passed": 12})
    assert rates(recorded) == {"code": 0.5, "story": 0.5}
    assert "code: acceptance rate 0.75 -> 0.5" in result.section
    assert "code: mean acceptance length 4 -> 3" in result.section
    assert [line.split()[-1] for line in result.section if line.startswith("code  ")] == ["stored"]


def test_new_only_adds(recorded: Project) -> None:
    recorded.workload("third", "one")
    result = recorded.run("suites", "--update-baselines=new")
    assert rates(recorded) == {"code": 0.75, "story": 0.75, "third": 0.5}
    assert {name for name, word in result.outcomes.items() if word == "failed"} == {
        f"{workload}.jsonl::fast::{metric}"
        for workload in ("code", "story")
        for metric in ("acceptance", "speedup")
    }
    assert "third: acceptance rate - -> 0.5" in result.section
    assert not any(line.startswith("code: ") for line in result.section)


@pytest.mark.parametrize("selection", [("suites/code.jsonl",), ("suites", "-k", "code")])
def test_a_partial_selection_keeps_the_others(
    recorded: Project, selection: tuple[str, ...]
) -> None:
    recorded.run(*selection, "--update-baselines")
    assert rates(recorded) == {"code": 0.5, "story": 0.75}


def test_profiles_have_files_of_their_own(two: Project) -> None:
    two.profiles(fast=FAST, other={**FAST, "env": {"FAKE_ENGINE": '{"accepted": 1}'}})
    two.record("--specdec-profile=fast", "--specdec-profile=other")
    assert rates(two) == {"code": 0.75, "story": 0.75}
    assert two.stored("other")["workloads"]["code"]["acceptance"]["rate"] == 0.25


def test_findings_keep_a_workload_from_being_stored(recorded: Project) -> None:
    result = recorded.fake(accepted=2, speculative=DIVERGES).run("suites", "--update-baselines")
    assert rates(recorded) == {"code": 0.75, "story": 0.5}
    assert result.exit_code == 1
    assert result.not_passed == {
        "code.jsonl::fast::identical[one]": "failed",
        **metrics("code", "failed"),
    }
    reason = "answers have defects (1), the first: divergence: `one`"
    assert result.message("code.jsonl::fast::speedup").splitlines() == [
        "stored baseline of `code` not written: speedup",
        reason,
    ]
    assert f"code: not stored: {reason}" in result.section


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"drafts": "none"}, "acceptance is unmeasured; speedup is unmeasured"),
        ({"speculative": {"diverge": {"prompt": "abc", "at": "end"}}}, "speedup is unmeasured"),
    ],
)
def test_what_was_not_measured_is_not_stored(
    two: Project, settings: dict[str, Any], reason: str
) -> None:
    result = two.fake(**settings).run("suites", "-k", "code", "--update-baselines")
    assert result.exit_code == 1
    (line,) = [each for each in result.section if each.startswith("code: not stored: ")]
    assert line.endswith(reason)
    assert "stored baselines unchanged" in result.section
    assert not (two.folder / "baselines").exists()


@pytest.mark.parametrize("mode", ["--update-baselines", "--update-baselines=new"])
def test_ci_must_mean_it(two: Project, mode: str) -> None:
    refused = two.env(CI="true").run("suites", mode)
    assert refused.exit_code == 4
    assert refused.errors == [
        "ERROR: `--update-baselines` in a CI environment would let a build accept its own "
        "regression",
        "hint: add `--update-baselines-in-ci` where that is meant",
        "",
    ]
    assert refused.commands == []
    assert not (two.folder / "baselines").exists()
    allowed = two.run("suites", mode, "--update-baselines-in-ci")
    assert allowed.exit_code == 0
    assert rates(two) == {"code": 0.75, "story": 0.75}


def test_an_option_that_swallows_a_path_is_told(two: Project) -> None:
    result = two.run("--update-baselines", "suites")
    assert result.exit_code == 4
    assert (
        "argument --update-baselines: `suites` is neither `all` nor `new`; put paths before the "
        "option, or write --update-baselines=all" in result.text
    )
    assert result.commands == []


def test_entries_no_test_asked_for_are_told_and_kept(recorded: Project) -> None:
    (recorded.folder / "suites/story.jsonl").rename(recorded.folder / "suites/tale.jsonl")
    result = recorded.run("suites", "--update-baselines")
    assert "stored, but no test asked for: story" in result.section
    assert set(rates(recorded)) == {"code", "story", "tale"}


def test_a_workload_of_a_python_test_is_stored_and_is_asked_for(project: Project) -> None:
    project.workload("own", EXACT, folder="tests").file(
        "tests/test_own.py",
        "import pytest\n@pytest.mark.specdec('own.jsonl')\ndef test_own(runs): pass\n",
    )
    project.run("tests", "--update-baselines")
    assert rates(project) == {"own": 0.75}
    result = project.run("tests")
    assert not any("no test asked for" in line for line in result.section)


def test_other_hardware_is_not_mixed_in(recorded: Project) -> None:
    recorded.edit_stored(lambda data: data["hardware"].update(instruction_set="mmx"))
    before = recorded.baselines_file().read_bytes()
    result = recorded.run("suites", "--update-baselines")
    assert result.exit_code == 1
    assert recorded.baselines_file().read_bytes() == before
    lines = result.message("code.jsonl::fast::acceptance").splitlines()
    assert lines[0] == "stored baseline of `code` not written: acceptance"
    assert "hardware `instruction_set`: mmx stored, " in lines[1]
    assert lines[2:] == [f"hint: delete `{recorded.baselines_file()}` and run this again"]
    assert "INTERNALERROR" not in result.text
    recorded.baselines_file().unlink()
    assert recorded.run("suites", "--update-baselines").exit_code == 0


def test_a_folder_that_cannot_be_written_is_told(two: Project) -> None:
    two.file("baselines", "a file where a folder should be")
    result = two.run("suites", "-k", "code", "--update-baselines")
    assert result.exit_code != 0
    assert "INTERNALERROR" not in result.text
    assert "baselines" in result.text
    assert (two.folder / "baselines").read_text() == "a file where a folder should be"


def test_a_corrupt_file_is_one_error_and_stays(recorded: Project) -> None:
    path = recorded.baselines_file()
    path.write_text('{"schema_version": 1,\n')
    for arguments in ((), ("--update-baselines",), ("--specdec-profile=fast",)):
        result = recorded.run("suites", *arguments)
        assert result.exit_code == 4
        assert result.errors[:2] == [
            f"ERROR: stored baseline `{path}` cannot be read: line 2 is not JSON: expecting "
            "property name enclosed in double quotes",
            "hint: restore it from version control, or delete it and record again with "
            "`--update-baselines`",
        ]
        assert result.commands == []
        assert path.read_text() == '{"schema_version": 1,\n'


def test_collection_errors_write_nothing(recorded: Project) -> None:
    before = recorded.baselines_file().read_bytes()
    recorded.file("suites/broken.jsonl", "{}\n")
    result = recorded.run("suites", "--update-baselines")
    assert result.exit_code == 2
    assert recorded.baselines_file().read_bytes() == before
    assert result.commands == []


def test_another_folder_for_baselines(two: Project) -> None:
    two.run("suites", "--update-baselines", "--specdec-baselines=kept/here")
    assert list((two.folder / "kept/here").glob("*/fast.json"))
    assert not (two.folder / "baselines").exists()
    assert two.run("suites", "-o", "specdec_baselines=kept/here").counts == {"passed": 12}


@pytest.mark.parametrize("tolerances", [{}, {"min_speedup": 1.0}])
def test_a_speedup_is_as_stable_as_all_its_passes_make_it(
    two: Project, tolerances: dict[str, float]
) -> None:
    # Noise in the passes up to the first look, and none after it.
    two.profile(tolerances=tolerances)
    two.fake(speculative={"wall_factors": [1.0, *[0.93, 1.07] * 3, *[1.0] * 10]}).record()
    assert set(rates(two)) == {"code", "story"}


def test_an_unstable_speedup_is_not_stored(two: Project) -> None:
    two.fake(speculative={"wall_factors": [1.0, 0.6, 1.6, 0.7, 1.5]})
    result = two.run("suites", "-k", "code", "--update-baselines")
    assert result.not_passed == metrics("code", "failed")
    assert "speedup is unstable: " in result.message("speedup")
    assert "raise `num_blocks` of the profile" in result.message("speedup")
    assert "stored baselines unchanged" in result.section
