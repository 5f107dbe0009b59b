"""Tries the built wheel as a stranger would: a fresh environment without vLLM, outside this
repository, and a workload of its own, gated under an interpreter that has vLLM.

    make wheel-demo
    .venv/bin/python tools/try_wheel.py --keep     leaves the folder, and says where

Needs a package index for the wheel's dependencies. Exits with 1 and the reason at the first step
that does not do what it should.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

if not __package__:  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.demonstration import (
    PYTHON,
    ROOT,
    TINY_PROFILE,
    DemonstrationError,
    run_shown,
    say,
    tiny_project,
    tiny_workloads,
)

GROUP = "gate for speculative decoding in vLLM:"
ABSENT = ("vllm", "torch", "transformers")
WHERE = "import pytest_specdec; print(pytest_specdec.__file__)"


def do(command: list[str], what: str, *, cwd: Path = ROOT) -> None:
    """Runs a step that must succeed."""
    if status := run_shown(command, cwd=cwd):
        raise DemonstrationError(f"{what}: exit status {status}", hint="see above for the cause")


def output_of(command: list[str], *, cwd: Path) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DemonstrationError(
            f"`{' '.join(command)}` failed: {done.stderr.strip()}", hint="see above for the cause"
        )
    return done.stdout


def build(folder: Path) -> Path:
    """The wheel, built from this tree with what `.venv` has."""
    command = [str(PYTHON), "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    do(command, "the wheel cannot be built")
    [wheel] = folder.glob("*.whl")
    return wheel


def install(wheel: Path, venv: Path) -> Path:
    """A fresh environment with the wheel and its dependencies; returns its interpreter."""
    do([str(PYTHON), "-m", "venv", str(venv)], "no environment can be made")
    python = venv / "bin" / "python"
    do([str(python), "-m", "pip", "install", "--quiet", str(wheel)], "the wheel does not install")
    return python


def check_installed(python: Path, *, cwd: Path) -> None:
    """The plugin comes from the wheel, pytest finds it, and there is no vLLM beside it."""
    place = output_of([str(python), "-c", WHERE], cwd=cwd).strip()
    if not Path(place).is_relative_to(python.parent.parent):
        raise DemonstrationError(
            f"the plugin does not come from the wheel: {place}", hint="unset PYTHONPATH"
        )
    if GROUP not in (listed := output_of([str(python), "-m", "pytest", "--help"], cwd=cwd)):
        raise DemonstrationError(
            "`pytest --help` does not list the plugin's options", hint="is its entry point there?"
        )
    group = listed[listed.index(GROUP) :].partition("\n\n")[0]
    say(f"`pytest --help` has the group:\n{group}")
    for name in ABSENT:
        program = f"import importlib.util as u; print(u.find_spec({name!r}) is None)"
        if output_of([str(python), "-c", program], cwd=cwd).strip() != "True":
            raise DemonstrationError(
                f"`{name}` is installed beside the plugin", hint="it must not be a dependency"
            )
    say(f"not installed beside it: {', '.join(ABSENT)}")


def gate(python: Path, project: Path, *, engine: Path) -> None:
    """Records, then gates, with pytest and plugin of one environment and vLLM of another."""
    command = [str(python), "-m", "pytest", "suites", "--specdec-python", str(engine)]
    update = ["--update-baselines", "--update-baselines-in-ci"]
    do([*command, *update], "the numbers were not recorded", cwd=project)
    do(command, "the gate did not pass", cwd=project)
    for made in ("baselines", ".specdec/report.json"):
        if not (project / made).exists():
            raise DemonstrationError(f"the gate left no `{made}`", hint="see above for the cause")


def attempt(folder: Path, *, engine: Path) -> None:
    """All steps, in a folder outside this repository."""
    (folder / "dist").mkdir()
    python = install(build(folder / "dist"), folder / "venv")
    project = tiny_project(folder / "project", tiny_workloads(), profiles=TINY_PROFILE)
    check_installed(python, cwd=project)
    gate(python, project, engine=engine)
    say("the wheel works: installed without vLLM, and it gates under another interpreter")


def main(arguments: list[str] | None = None) -> int:
    """Tries the wheel, or says what is wrong with it."""
    parser = argparse.ArgumentParser(description="Tries the built wheel in a fresh environment.")
    parser.add_argument(
        "--engine", type=Path, default=ROOT / PYTHON, help="the interpreter that has vLLM"
    )
    parser.add_argument("--keep", action="store_true", help="leave the folder")
    options = parser.parse_args(arguments)
    os.environ.pop("PYTHONPATH", None)
    folder = Path(tempfile.mkdtemp(prefix="specdec-wheel-"))
    try:
        attempt(folder, engine=options.engine.absolute())
    except DemonstrationError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        if options.keep:
            say(f"left: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
