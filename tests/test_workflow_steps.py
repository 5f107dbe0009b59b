"""What the workflows' steps call there is: options, files, extras, make targets, profiles."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path, PurePath
from typing import Any

import pytest

from pytest_specdec.cli import parser
from tests.workflow_files import JOBS, ROOT, Job, calls

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
PROFILES = tomllib.loads((ROOT / "specdec.toml").read_text(encoding="utf-8"))
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
GIVEN = {
    "profile": PROFILES["default"]["gpu"],
    "profiles": " ".join(PROFILES["profiles"]),
    "workers": "3",
    "mode": "new",
}
EVERY_WAY = [
    (job, is_given) for job in JOBS for is_given in ((True, False) if job.inputs else (False,))
]
GATES = [(job, is_given) for job, is_given in EVERY_WAY if "self-hosted" in job.job["runs-on"]]


def inputs(job: Job, *, is_given: bool) -> dict[str, str]:
    """Every input filled in, or those alone that must be."""
    return {
        name: GIVEN[name] if is_given else str(each.get("default", GIVEN[name]))
        for name, each in job.inputs.items()
    }


def calls_of(job: Job, folder: Path, *, is_given: bool) -> list[list[str]]:
    filled_in = inputs(job, is_given=is_given)
    return [call for step in job.runs for call in calls(step, folder, inputs=filled_in)]


def check(call: list[str], config: pytest.Config) -> None:
    """Fails where the command would not know what it is asked."""
    command, *arguments = call
    if command == "pytest":
        options = config._parser.parse(arguments)
        assert [path for path in options.file_or_dir if not (ROOT / path).exists()] == []
        assert options.file_or_dir, "no path: whatever `testpaths` says would run"
        assert {*(options.specdec_profile_option or ())} <= PROFILES["profiles"].keys()
    elif command == "pytest-specdec":
        parser().parse_args(arguments)
    elif command == "make":
        assert {*arguments} <= {*TARGETS}
    elif command == "pip":
        asked = [name for each in arguments for name in re.findall(r"\w+", each.partition("[")[2])]
        assert {*asked} <= EXTRAS.keys()
    else:
        assert command in {"python3", "git", "gh"}


@pytest.mark.parametrize(("job", "is_given"), EVERY_WAY, ids=str)
def test_what_is_called_there_is(
    job: Job, is_given: bool, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    called = calls_of(job, tmp_path, is_given=is_given)
    assert called
    for call in called:
        check(call, pytestconfig)


@pytest.mark.parametrize(
    "call",
    [
        "pytest suites --specdec-gpus",
        "pytest suites --update-baselines=old",
        "pytest suite --specdec-gpu",
        "pytest --specdec-gpu",
        "pytest suites --specdec-profile nobody",
        "pytest-specdec export report.json --to nothing",
        "pytest-specdec exports report.json",
        "make tests",
        "pip install -e .[gpus]",
        "curl anything",
    ],
)
def test_what_there_is_not_is_seen(call: str, pytestconfig: pytest.Config) -> None:
    with pytest.raises((AssertionError, pytest.UsageError, SystemExit)):
        check(call.split(), pytestconfig)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("pytest suites", "command not found"),  # not the one of .venv
        ('.venv/bin/pytest "$PROFIL"', "unbound variable"),
        ("if true; then", "syntax error"),
    ],
)
def test_a_block_that_breaks_is_seen(script: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=said):
        calls({"run": script}, tmp_path, inputs={})


def options_of(job: Job, folder: Path, config: pytest.Config, *, is_given: bool) -> Any:
    """What the job's one session is asked."""
    called = calls_of(job, folder, is_given=is_given)
    (arguments,) = [arguments for command, *arguments in called if command == "pytest"]
    return config._parser.parse(arguments)


@pytest.mark.parametrize(("job", "is_given"), GATES, ids=str)
def test_a_gate_keeps_all_that_it_says_whatever_the_verdict(
    job: Job, is_given: bool, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    options = options_of(job, tmp_path, pytestconfig, is_given=is_given)
    kept = [
        PurePath(step["with"]["path"])
        for step in job.uses("actions/upload-artifact")
        if step.get("if") == "always()"
    ]
    assert kept == [PurePath(options.specdec_report_option)]
    assert PurePath(options.specdec_record_option).is_relative_to(kept[0])
    assert PurePath(options.xmlpath).is_relative_to(kept[0])
    assert options.specdec_gpu


@pytest.mark.parametrize("job", [job for job, is_given in GATES if is_given], ids=str)
def test_every_input_is_used(job: Job, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    options = options_of(job, tmp_path, pytestconfig, is_given=True)
    profiles = " ".join(options.specdec_profile_option)
    said = {
        "profile": profiles,
        "profiles": profiles,
        "workers": str(options.numprocesses),
        "mode": options.update_baselines,
    }
    assert {name: said[name] for name in job.inputs} == inputs(job, is_given=True)
