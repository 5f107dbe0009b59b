"""A report can be published and compared: nothing in it says where the project lies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.profile_report import told_from
from tests.fake_engine.project import FAST, Project
from tests.measured_gains import all_of
from tests.report.reported import profile_report


def strings(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """All of them, with their places; keys too."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield place, key
            yield from strings(each, f"{place}/{key}")
    elif isinstance(value, list):
        for each in value:
            yield from strings(each, place)
    elif isinstance(value, str):
        yield place, value


def absolute(project: Project) -> list[tuple[str, str]]:
    folder = str(project.folder)
    return [
        (place, text)
        for place, text in strings(project.report())
        if text.startswith("/") or folder in text
    ]


def test_paths_are_told_from_the_project_s_folder(project: Project) -> None:
    result = project.workload("code", "one").run("suites", "--update-baselines")
    assert absolute(project) == []
    (profile,) = project.report()["profiles"]
    assert profile["profile"]["root"] == "."
    path = str(project.baselines_file().relative_to(project.folder))
    assert profile["update"]["path"] == path
    assert f"stored baselines written: {path}" in result.section


@pytest.mark.parametrize("what", ["exit", ["out of memory", "gone"]])
def test_the_log_of_an_engine_that_died_too(project: Project, what: Any) -> None:
    project.workload("code", "one").workload("story", "one")
    project.fake(speculative={"on": {"generate": what}}).run("suites")
    (profile,) = project.report()["profiles"]
    assert ".specdec/logs/" in profile["failure"]
    assert set(profile["not_run"]) == {"code", "story"}
    assert absolute(project) == []


def test_a_file_that_is_not_written_too(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.workload("code", "one").record()
    path = project.baselines_file()

    def fsync(descriptor: int) -> None:
        if path.name in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    project.run("suites", "--update-baselines")
    (profile,) = project.report()["profiles"]
    assert profile["update"]["refused"]["code"] == [
        f"`{path.relative_to(project.folder)}` cannot be written: No space left on device"
    ]
    (workload,) = profile["workloads"]
    assert (workload["verdict"], profile["verdict"]) == ("passed", "failed")
    assert workload["not_stored"] == profile["update"]["refused"]["code"]
    assert absolute(project) == []


def test_what_a_user_names_by_a_whole_path_stays(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    model = tmp_path_factory.mktemp("elsewhere") / "model"
    (project.folder / "model").rename(model)
    project.profiles(fast={**FAST, "model": str(model)}).workload("code", "one").run("suites")
    assert absolute(project) == [("/profiles/profile/model", str(model))]


def test_what_lies_elsewhere_is_told_by_its_whole_path(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("kept")
    project.workload("code", "one")
    project.run("suites", "--update-baselines", f"--specdec-baselines={folder}")
    ((place, text),) = absolute(project)
    assert place == "/profiles/update/path"
    assert text.startswith(f"{folder}/")


def test_what_a_test_of_one_s_own_said_too(project: Project) -> None:
    project.workload("code", "one").file(
        "suites/test_own.py", "def test_own(engine_pair): assert 0, __file__\n"
    )
    project.run("suites")
    ((own,),) = (each["own_tests"] for each in project.report()["profiles"])
    assert own["message"] == "AssertionError: suites/test_own.py"
    assert absolute(project) == []


def test_a_path_that_merely_holds_the_project_s_stays_whole(project: Project) -> None:
    other = f"/mnt{project.folder}/model"
    project.workload("code", "one").fake(on={"load": ["error", f"no file: {other}"]})
    project.run("suites")
    (profile,) = project.report()["profiles"]
    assert profile["failure"].partition("\n")[0].endswith(f"no file: {other}")
    assert profile["not_run"]["code"].endswith(f"no file: {other}")


def test_reasons_why_speculation_is_not_worth_it_tell_them_so_too() -> None:
    why = "the engine's log is /work/project/.specdec/logs/a.log"
    asked = profile_report(worth_it=all_of(why))
    told = told_from(asked, Path("/work/project")).worth_it
    assert told is not None
    reasons = {each.reason for each in told.points} | {each.reason for each in told.answers}
    reasons |= {*told.unmet}
    assert reasons == {"the engine's log is .specdec/logs/a.log"}
