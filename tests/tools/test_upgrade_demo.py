"""The upgrade demonstration without engines: commands, recordings, exit statuses."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_specdec.baseline_store import BaselineStore
from pytest_specdec.hardware import cpu_hardware
from pytest_specdec.profile import read_profiles
from pytest_specdec.stored_baseline import StoredBaseline
from pytest_specdec.workload import read_workload
from tests.measured import stored
from tools import demonstration, upgrade_demo

ROOT = Path(__file__).resolve().parents[2]
OLD = Path(".venv-vllm-0.29.0/bin/python")
NEW = Path(".venv/bin/python")
RECORD = (
    ".venv/bin/pytest a.jsonl b.jsonl --specdec-python .venv-vllm-0.29.0/bin/python "
    "--specdec-baselines .specdec/upgrade/baselines --specdec-report .specdec/upgrade/old "
    "--update-baselines --update-baselines-in-ci"
)
JUDGE = (
    ".venv/bin/pytest a.jsonl b.jsonl --specdec-python .venv/bin/python "
    "--specdec-baselines .specdec/upgrade/baselines --specdec-report .specdec/upgrade/new"
)
PROFILES = """
[profiles.tiny]
device = "cpu"
model = "model"
engine_args = { max_num_seqs = 2 }
speculative_config = { method = "ngram", num_speculative_tokens = 4 }
"""
PROMPT = '{"id": "one", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}\n'

Demonstrate = Callable[..., int]


class Commands:
    """Stands in for `run_shown`: keeps what it is given, and answers as told."""

    def __init__(self, *statuses: int) -> None:
        self.run: list[str] = []
        self._statuses = [*statuses]

    def __call__(self, command: Sequence[str], *, cwd: Path = ROOT) -> int:
        self.run.append(shlex.join(command))
        return self._statuses.pop(0)


@pytest.fixture
def demonstrate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Demonstrate:
    """The demonstration in an empty folder, with stand-ins for what needs vLLM."""

    def run(commands: Commands, *arguments: str, is_recorded: bool = False) -> int:
        monkeypatch.setattr(upgrade_demo, "ROOT", tmp_path)
        monkeypatch.setattr(upgrade_demo, "run_shown", commands)
        monkeypatch.setattr(
            upgrade_demo, "engine_python", lambda named: {"0.29.0": OLD}.get(named, Path(named))
        )
        monkeypatch.setattr(
            upgrade_demo, "vllm_version", lambda python: "0.29.0" if python == OLD else "0.32.0"
        )
        baselines = tmp_path / upgrade_demo.BASELINES
        monkeypatch.setattr(
            upgrade_demo, "is_recorded", lambda *_, version: is_recorded and baselines.exists()
        )
        baselines.mkdir(parents=True)
        return upgrade_demo.main(["--workloads", "a.jsonl", "b.jsonl", *arguments])

    return run


def test_it_records_with_the_old_version_then_gates_the_new_one(
    demonstrate: Demonstrate, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = Commands(0, 0)

    assert demonstrate(commands) == 0
    assert commands.run == [RECORD, JUDGE]
    assert capsys.readouterr().out == (
        "upgrade: vLLM 0.29.0 -> 0.32.0\nupgrade: vLLM 0.29.0 -> 0.32.0 passed\n"
    )


def test_the_exit_status_is_the_gates(
    demonstrate: Demonstrate, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demonstrate(Commands(0, 1)) == 1
    assert capsys.readouterr().out.endswith(
        "upgrade: vLLM 0.29.0 -> 0.32.0 did not pass: exit status 1\n"
    )


def test_a_recording_that_failed_is_not_gated(
    demonstrate: Demonstrate, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = Commands(4)

    assert demonstrate(commands) == 4
    assert commands.run == [RECORD]
    assert capsys.readouterr().out.endswith(
        "upgrade: vLLM 0.29.0 could not be recorded, so nothing was gated\n"
    )


def test_a_recording_that_is_there_is_used(
    demonstrate: Demonstrate, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = Commands(0)

    assert demonstrate(commands, is_recorded=True) == 0
    assert commands.run == [JUDGE]
    assert "--fresh records it again" in capsys.readouterr().out


def test_fresh_records_again(demonstrate: Demonstrate) -> None:
    commands = Commands(0, 0)

    assert demonstrate(commands, "--fresh", is_recorded=True) == 0
    assert commands.run == [RECORD, JUDGE]


def test_the_recorded_interpreters_may_be_named(demonstrate: Demonstrate) -> None:
    commands = Commands(0, 0)

    demonstrate(commands, "--old", "old/python", "--new", "new/python")

    record, judge = commands.run
    assert "--specdec-python old/python " in record
    assert "--specdec-python new/python " in judge


def test_by_default_the_workloads_are_there() -> None:
    assert all((ROOT / each).is_file() for each in upgrade_demo.WORKLOADS)


def test_an_error_is_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert upgrade_demo.main(["--old", "no/python"]) == 1
    assert capsys.readouterr().err == (
        "neither a version of vLLM nor an interpreter: no/python\n"
        "hint: such as 0.29.0, or the path of a python that has vLLM\n"
    )


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A project with one workload, and its numbers as vLLM 0.32.0 gave them."""
    (tmp_path / "specdec.toml").write_text(PROFILES)
    (tmp_path / "a.jsonl").write_text(PROMPT)
    digest = read_profiles(tmp_path / "specdec.toml").chosen("tiny").digest
    entry = stored(digest=read_workload(tmp_path / "a.jsonl").digest)
    entry = replace(entry, provenance=replace(entry.provenance, settings_digest=digest))
    hardware = cpu_hardware()
    baseline = StoredBaseline(
        hardware_key=hardware.key, hardware=hardware.facts, profile="tiny", workloads={"a": entry}
    )
    BaselineStore(tmp_path / upgrade_demo.BASELINES).save(baseline)
    return tmp_path


def test_what_was_recorded_is_recorded(recorded: Path) -> None:
    assert upgrade_demo.is_recorded(["a.jsonl"], version="0.32.0", root=recorded)


@pytest.mark.parametrize(
    ("file", "text", "version"),
    [
        ("a.jsonl", PROMPT, "0.31.0"),
        ("a.jsonl", PROMPT.replace("Hi", "Hello"), "0.32.0"),
        ("specdec.toml", PROFILES.replace("max_num_seqs = 2", "max_num_seqs = 4"), "0.32.0"),
        ("specdec.toml", PROFILES.replace("tiny", "other"), "0.32.0"),
    ],
    ids=["another version", "another prompt", "another setting", "another profile"],
)
def test_anything_else_is_not_recorded(recorded: Path, file: str, text: str, version: str) -> None:
    (recorded / file).write_text(text)

    assert not upgrade_demo.is_recorded(["a.jsonl"], version=version, root=recorded)


def test_a_workload_without_numbers_is_not_recorded(recorded: Path) -> None:
    (recorded / "b.jsonl").write_text(PROMPT)

    assert not upgrade_demo.is_recorded(["a.jsonl", "b.jsonl"], version="0.32.0", root=recorded)


@pytest.mark.parametrize(
    ("named", "python", "ran"),
    [
        ("0.32.0", ".venv/bin/python", []),
        (
            "0.29.0",
            ".venv-vllm-0.29.0/bin/python",
            [".venv/bin/python tools/setup.py --engine 0.29.0"],
        ),
        ("mine/python", "mine/python", []),
    ],
    ids=["the one of the lock", "another version", "a path"],
)
def test_an_engine_is_named_by_version_or_by_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, python: str, ran: list[str]
) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "cpu.lock").write_text("torch==2.13.0+cpu\nvllm-cpu==0.32.0\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "python").touch()
    commands = Commands(0)
    monkeypatch.setattr(demonstration, "run_shown", commands)

    assert demonstration.engine_python(named, root=tmp_path) == Path(python)
    assert commands.run == ran


def test_an_environment_that_cannot_be_made_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "cpu.lock").touch()
    monkeypatch.setattr(demonstration, "run_shown", Commands(1))

    with pytest.raises(
        demonstration.DemonstrationError, match=r"no environment with vLLM: 9\.9\.9"
    ):
        demonstration.engine_python("9.9.9", root=tmp_path)


def test_a_version_is_asked_of_the_interpreter(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\ntest "$1" = -c && echo 0.29.0\n')
    program.chmod(0o755)
    assert upgrade_demo.vllm_version(Path("python"), root=tmp_path) == "0.29.0"

    program.write_text("#!/bin/sh\n")
    with pytest.raises(demonstration.DemonstrationError) as error:
        upgrade_demo.vllm_version(Path("python"), root=tmp_path)
    assert str(error.value) == (
        "no vLLM under this interpreter: python\nhint: name another, or a version"
    )


def test_a_command_is_shown_as_one_would_type_it(capfd: pytest.CaptureFixture[str]) -> None:
    assert demonstration.run_shown(["sh", "-c", "echo a b; exit 3"]) == 3
    assert capfd.readouterr().out == "$ sh -c 'echo a b; exit 3'\na b\n"


def test_a_command_is_ended_with_it() -> None:
    """SIGTERM reaches the command, and the demonstration ends as the command does."""
    child = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))"
    child += "; print('ready', flush=True); time.sleep(60)"
    program = "import sys; from tools.demonstration import run_shown; "
    program += f"sys.exit(run_shown([sys.executable, '-c', {child!r}]))"
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("$ ")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)

    assert process.returncode == 9


def test_a_tiny_project_is_read_as_it_is_meant(tmp_path: Path) -> None:
    project = demonstration.tiny_project(
        tmp_path / "project",
        demonstration.tiny_workloads(),
        profiles=demonstration.TINY_PROFILE,
    )

    profile = read_profiles(project / "specdec.toml").defaults_for("cpu")[0]
    found = {each.name: each for each in map(read_workload, (project / "suites").iterdir())}

    assert (profile.name, profile.num_blocks) == ("tiny", 1)
    assert {name: each.concurrency for name, each in found.items()} == {
        "alone": 1,
        "together": 2,
        "schema": 2,
    }
    assert (project / ".models").resolve() == (ROOT / ".models").resolve()
