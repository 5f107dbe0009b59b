"""The workflows of this repository, and what their steps call.

A step's `run:` block is run by the shell, with nothing behind it: each command only notes how it
was called. So variables, loops and substitutions are what a runner would make of them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))
# GitHub's own way to run a block that names no shell, and `-u`: a variable that nobody sets fails.
SHELL = ("/bin/bash", "-e", "-u")
OF_GITHUB = {"GITHUB_RUN_ID": "17", "GITHUB_REF_NAME": "main"}
COMMANDS = (
    ".venv/bin/pytest",
    ".venv/bin/pytest-specdec",
    ".venv/bin/pip",
    *(f"bin/{n}" for n in ("python3", "make", "git", "gh")),
)
# `git diff --quiet` says with 1 that something changed.
STAND_IN = """#!/bin/bash
printf '%s\\0' "${0##*/}" "$@" >>"$CALLS"
printf '\\n' >>"$CALLS"
[ "$1" != diff ]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job, and the workflow that it is of."""

    file: str
    name: str
    flow: Mapping[str, Any]
    job: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.file}-{self.name}"

    @property
    def inputs(self) -> Mapping[str, Any]:
        """What somebody who starts the workflow is asked for."""
        started_by_hand: Mapping[str, Any] = self.flow["on"].get("workflow_dispatch") or {}
        inputs: Mapping[str, Any] = started_by_hand.get("inputs", {})
        return inputs

    @property
    def runs(self) -> list[Mapping[str, Any]]:
        """The steps that call something."""
        return [step for step in self.job["steps"] if "run" in step]

    def uses(self, action: str) -> list[Mapping[str, Any]]:
        """The steps that use that action, whatever its version."""
        return [step for step in self.job["steps"] if step.get("uses", "").startswith(f"{action}@")]


def read(path: Path) -> Iterator[Job]:
    """The jobs of a workflow."""
    flow = YAML(typ="safe", pure=True).load(path)
    for name, job in flow["jobs"].items():
        yield Job(file=path.name, name=name, flow=flow, job=job)


JOBS = [job for path in FILES for job in read(path)]


def refused_by_schema(*paths: Path, schema: str = "vendor.github-workflows") -> str:
    """What check-jsonschema says against workflows, or pipelines; empty where it says nothing."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    result = subprocess.run([*command, schema, *paths], capture_output=True, text=True, check=False)
    return "" if result.returncode == 0 else result.stdout + result.stderr


def calls(step: Mapping[str, Any], folder: Path, *, inputs: Mapping[str, str]) -> list[list[str]]:
    """What the step calls, in order, where the workflow is started with these inputs."""
    for name in COMMANDS:
        _stand_in(folder / name)
    script, noted = folder / "script", folder / "calls"
    script.write_text(step["run"], encoding="utf-8")
    noted.write_text("")
    env = {name: _filled_in(value, inputs) for name, value in step.get("env", {}).items()}
    result = subprocess.run(
        [*SHELL, script],
        cwd=folder,
        env={**OF_GITHUB, **env, "PATH": str(folder / "bin"), "CALLS": str(noted)},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return [line.split("\0")[:-1] for line in noted.read_text(encoding="utf-8").splitlines()]


def _stand_in(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(STAND_IN)
    path.chmod(0o755)


def _filled_in(value: str, inputs: Mapping[str, str]) -> str:
    """An `env:` value with its expressions worked out; secrets and the like are just some text."""
    return re.sub(
        r"\$\{\{ *(?:inputs\.(\w+)|[\w.]+) *\}\}",
        lambda match: inputs[match[1]] if match[1] else "text",
        value,
    )
