"""The whole plugin on real engines: store, gate, judge the recording of that, and two ways of being
interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.profile import Profile
from tests.engines.workers import group_ends
from tests.real.conftest import COPY, PROMPTS, row, workload

SETTINGS = """
[profiles.smollm2-ngram]
device = "cpu"
model = {model}
num_blocks = 2
engine_args = {engine_args}
speculative_config = {speculative_config}
tolerances = {{ speedup_drop = 0.9 }}
# Other tests may run beside it.
limits = {{ max_other_cpu_share = 1.0 }}
"""


def toml(value: Any) -> str:
    """A value of TOML's; its strings, numbers and truths are JSON's."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + " }"
    return json.dumps(value)


@pytest.fixture(scope="module")
def folder(small_profile: Profile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of somebody else's, whose numbers are recorded already: see `recorded`."""
    root = tmp_path_factory.mktemp("project")
    (root / "pytest.ini").write_text("[pytest]\n")
    (root / "specdec.toml").write_text(
        SETTINGS.format(
            model=toml(small_profile.target_model),
            engine_args=toml(small_profile.engine_args),
            speculative_config=toml(small_profile.speculative_config),
        )
    )
    suites = root / "suites"
    suites.mkdir()
    copies = [row(name, PROMPTS[name], max_tokens=16) for name in ("repeat", "count")]
    workload(suites, "copies", [*copies, row("rename", COPY, max_tokens=16)], concurrency=3)
    choice = {"structured_outputs": {"regex": "(red|blue), (red|blue), (red|blue)"}}
    colors = [
        row(name, "Red, blue, red, blue.", max_tokens=16, **choice) for name in ("one", "two")
    ]
    workload(suites, "colors", colors)
    return root


def environment() -> dict[str, str]:
    """As on a desk: not a CI environment, and every line as soon as it is written."""
    return {**os.environ, "CI": "", "PYTHONUNBUFFERED": "1"}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "suites", "-p", "no:cacheprovider", *arguments]


def gate(folder: Path, *arguments: str) -> str:
    """What a session that succeeds prints."""
    done = subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def stored_files(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.joinpath("baselines").rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def recorded(folder: Path) -> str:
    """What the recording session printed."""
    return gate(folder, "--update-baselines")


def check_report(folder: Path, printed: str) -> Mapping[str, Any]:
    """What both sessions have in common."""
    report = json.loads((folder / ".specdec" / "report.json").read_text())
    (profile,) = report["profiles"]
    assert profile["num_starts"] == {"baseline": 1, "speculative": 1}
    assert "engines started: baseline 1, speculative 1" in printed
    counts = {each["name"]: each["num_identical"] for each in profile["workloads"]}
    assert counts == {"copies": 3, "colors": 2}
    assert re.search(r"^copies +3 of 3 ", printed, re.MULTILINE)
    assert re.search(r"^colors +2 of 2 ", printed, re.MULTILINE)
    assert all(each["findings"] == [] for each in profile["workloads"])
    return dict(profile)


def test_a_first_session_records(folder: Path, recorded: str) -> None:
    profile = check_report(folder, recorded)
    (path,) = stored_files(folder)
    assert re.fullmatch(r"baselines/[^/]+/smollm2-ngram\.json", path)
    assert "stored baselines written: " in recorded
    stored = json.loads((folder / path).read_text())["workloads"]
    assert "copies" in stored
    assert profile["update"]["rows"]


@pytest.fixture(scope="module")
def gated(folder: Path, recorded: str) -> Mapping[str, Any]:
    """What the next session reported, which gates and is recorded."""
    before = stored_files(folder)
    assert before
    printed = gate(folder, "--specdec-record=recordings")
    assert stored_files(folder) == before
    return check_report(folder, printed)


def test_the_next_session_gates_against_it(gated: Mapping[str, Any]) -> None:
    verdicts = {each["name"]: each["verdicts"] for each in gated["workloads"]}
    acceptance = verdicts["copies"]["acceptance"]
    assert acceptance["kind"] == "passed"
    assert acceptance["now"] == pytest.approx(acceptance["stored"], abs=1e-6)


def test_its_recording_is_judged_alike_without_engines(
    folder: Path, gated: Mapping[str, Any]
) -> None:
    printed = gate(folder, "--specdec-replay=recordings", "--specdec-python=./absent")
    assert "specdec: replayed from: recordings" in printed.splitlines()
    (again,) = json.loads((folder / ".specdec" / "report.json").read_text())["profiles"]
    assert again["num_starts"] == {"baseline": 0, "speculative": 0}
    assert again == {**gated, "num_starts": again["num_starts"]}


@pytest.mark.parametrize(
    ("kind", "status"), [(signal.SIGINT, 2), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_an_interrupted_session_leaves_nothing_behind(
    folder: Path, recorded: str, kind: signal.Signals, status: int
) -> None:
    before = stored_files(folder)
    assert before
    printed = []
    workers: list[int] = []
    with subprocess.Popen(
        command("--update-baselines"),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as session:
        assert session.stdout is not None
        for line in session.stdout:
            printed.append(line)
            if "speculative engine loaded" in line:
                workers = children(session.pid)
                # By then it generates.
                time.sleep(1)
                session.send_signal(kind)
        returncode = session.wait(timeout=30)
    assert returncode == status, "".join(printed)
    assert len(workers) == 2, "".join(printed)
    assert all(group_ends(worker, within_s=5) for worker in workers)
    assert stored_files(folder) == before


def children(parent: int) -> list[int]:
    """A process's own children."""
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return [int(child) for child in listed.split()]
