"""The parts of the set-up: what it checks, what it recovers from, and every message."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools import environment

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["setup.py", "environment.py"])
def test_an_old_python_can_read_what_tells_it_that_it_is_old(name: str) -> None:
    ast.parse((ROOT / "tools" / name).read_text(), feature_version=(3, 8))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (
            "Collecting a==1\nERROR: Could not install packages due to an OSError: "
            "[Errno 28] No space left on device\n",
            "the disk is full\nhint: free some space and run it again",
        ),
        (
            "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError'\n"
            "ERROR: No matching distribution found for a==1\n",
            "the package index cannot be reached\n"
            "hint: check the network and `pip config list`, then run it again; the log is x.log",
        ),
        (
            "ERROR: Could not find a version\nERROR: No matching distribution found for a==1\n",
            f"no package index has `a==1` for Python {sys.version.split()[0]}\n"
            "hint: Python 3.11 has every package; pip's own words are in x.log",
        ),
        (
            "Collecting a==1\nERROR: a is not a supported wheel on this platform.\n",
            "pip failed: a is not a supported wheel on this platform.\n"
            "hint: run it again; the log is x.log",
        ),
        ("Killed\n", "pip failed: Killed\nhint: run it again; the log is x.log"),
    ],
    ids=["disk full", "no network", "no such package", "pip's own error", "anything else"],
)
def test_pips_many_lines_become_one_error(output: str, message: str) -> None:
    assert str(environment.explained(output, log=Path("x.log"))) == message


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("", "working"),
        ("Collecting numpy==2.3.5\n", "Collecting numpy==2.3.5"),
        ("Collecting a==1\nWARNING: something about the machine\n", "Collecting a==1"),
        (
            "Downloading https://index.invalid/a/b/torch-2.13.0.whl#sha256=00 (191.8 MB)",
            "Downloading torch-2.13.0.whl (191.8 MB)",
        ),
        ("Installing collected packages: torch\n", "unpacking it"),
        ("Installing collected packages: a, b, c\n", "unpacking 3 packages"),
        ("x" * 200, "x" * 77 + "..."),
    ],
)
def test_progress_shows_one_short_line(output: str, shown: str) -> None:
    assert environment._in_short(output) == shown


def test_a_long_command_shows_that_it_lives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "REPORT_EVERY_S", 0.1)
    program = "import time; print('Collecting a', flush=True); time.sleep(0.5)"

    environment.run([sys.executable, "-c", program], log=tmp_path / "log", cwd=tmp_path)

    assert "setup:    0 s  Collecting a\n" in capsys.readouterr().out


def test_a_failed_command_says_what_it_said_and_nothing_older(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("an older run\n")
    program = "import sys; print('broken'); sys.exit(3)"

    with pytest.raises(environment.CommandFailed) as failed:
        environment.run([sys.executable, "-c", program], log=log, cwd=tmp_path)

    assert failed.value.output == "broken\n"


def test_an_interruption_leaves_no_process_behind(tmp_path: Path) -> None:
    child = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    parent = (
        "import sys; from pathlib import Path; from tools.environment import run; "
        f"run([sys.executable, '-c', {child!r}], log=Path({str(tmp_path / 'log')!r}), cwd='.')"
    )
    process = subprocess.Popen([sys.executable, "-c", parent], cwd=ROOT, stderr=subprocess.DEVNULL)
    child_id = _when_written(tmp_path / "log")

    process.send_signal(signal.SIGINT)  # to the parent alone, unlike Ctrl-C in a terminal
    process.wait(timeout=10)

    assert not Path(f"/proc/{child_id}").exists()


def _when_written(path: Path) -> str:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().endswith("\n"):
            return path.read_text().strip()
        time.sleep(0.02)
    raise TimeoutError(path)


def test_a_venv_is_made_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    venv = tmp_path / ".venv"

    environment.make_venv(venv, with_pip=False)
    (venv / "kept").touch()
    environment.make_venv(venv, with_pip=False)

    assert (venv / "kept").exists()
    assert capsys.readouterr().out.count("making .venv") == 1
    assert environment.site_packages(venv).is_dir()


@pytest.mark.parametrize("damage", ["no interpreter", "no pip", "moved here"])
def test_a_venv_that_is_not_whole_is_made_anew(tmp_path: Path, damage: str) -> None:
    venv = tmp_path / ".venv"
    made = tmp_path / "elsewhere" if damage == "moved here" else venv
    environment.make_venv(made, with_pip=False)
    if damage == "no interpreter":
        environment.python_of(venv).unlink()
    if damage == "moved here":
        made.rename(venv)
        (venv / "bin" / "pip").write_text(f"#!{made}/bin/python\n")
        (environment.site_packages(venv) / "pip.py").touch()

    assert not environment.is_whole(venv, with_pip=True)

    (venv / "left over").touch()
    if damage == "no interpreter":
        environment.make_venv(venv, with_pip=False)
        assert not (venv / "left over").exists()
        assert environment.is_whole(venv, with_pip=False)


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    venv = tmp_path / ".venv"
    venv.mkdir()
    (venv / "thesis.txt").touch()

    with pytest.raises(environment.SetupError) as error:
        environment.make_venv(venv, with_pip=False)

    assert str(error.value) == (
        "`.venv` is there and is no virtual environment\nhint: move it out of the way"
    )
    assert (venv / "thesis.txt").exists()


def test_a_venv_that_cannot_be_made_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")

    with pytest.raises(environment.SetupError, match=r"`\.venv` cannot be made: .*\nhint: .*apt"):
        environment.make_venv(tmp_path / ".venv", with_pip=False)


def test_a_python_that_is_gone_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))

    with pytest.raises(environment.SetupError, match=r"`venv` cannot run: .*\nhint: use another"):
        environment.make_venv(tmp_path / ".venv", with_pip=False)


def test_a_folder_without_packages_is_no_venv(tmp_path: Path) -> None:
    with pytest.raises(environment.SetupError, match=r"no virtual environment\nhint: rm -r"):
        environment.site_packages(tmp_path)


def test_packages_cut_short_are_forgotten(tmp_path: Path) -> None:
    for name in ("whole-1.0", "cut_short-2.0"):
        (tmp_path / f"{name}.dist-info").mkdir()
        (tmp_path / f"{name}.dist-info" / "METADATA").touch()
    (tmp_path / "whole-1.0.dist-info" / "RECORD").touch()
    (tmp_path / "~hole").mkdir()

    environment.discard_half_installed(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["whole-1.0.dist-info"]


def test_what_is_not_installed_is_known_by_name_and_version(tmp_path: Path) -> None:
    for name, version in (("Foo_Bar", "1.0"), ("baz", "2.0")):
        info = tmp_path / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")

    missing = environment.not_installed(["foo-bar==1.0", "baz==2.1", "absent==3"], tmp_path)

    assert missing == ["baz==2.1", "absent==3"]
