"""A project that uses the plugin, with the fake engine: these files in, this outcome out.

project.workload("code", "one", "two").run("suites").assert_outcomes({...})
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

# Loaded here, before pytester notes which modules there are, and drops what else a session loads:
# numpy must not be loaded twice, and the others take longer to load than a session.
import jinja2  # noqa: F401
import jsonschema  # noqa: F401
import pytest
import scipy.optimize
import scipy.special  # noqa: F401
import sqlglot.optimizer  # noqa: F401

import pytest_specdec.session
import pytest_specdec.stored_entries
import pytest_specdec.suite  # noqa: F401
from pytest_specdec.report.saved import report_defect
from pytest_specdec.workload import METRICS

ENGINE = Path(__file__).with_name("engine.py")
DYING_S = 5.0
SPECULATIVE = {"method": "ngram", "num_speculative_tokens": 4}
# Whatever else this machine does while tests run is no matter of theirs.
CALM = {"max_other_cpu_share": 1.0}
FAST: Mapping[str, Any] = {
    "device": "cpu",
    "model": "model",
    "speculative_config": SPECULATIVE,
    "limits": CALM,
}


@dataclass(frozen=True)
class Result:
    """One pytest session.

    Attributes:
        exit_code: pytest's.
        outcomes: passed, failed, skipped or error, by node id without `suites/`.
        messages: failure texts and reasons of skips, by the same ids.
        lines: of standard output.
        errors: of standard error.
        commands: what all engines were told, in order.
        folder: the project's.
    """

    exit_code: int
    outcomes: Mapping[str, str]
    messages: Mapping[str, str]
    lines: Sequence[str]
    errors: Sequence[str]
    commands: Sequence[Mapping[str, Any]]
    folder: Path

    @cached_property
    def text(self) -> str:
        return "\n".join((*self.lines, *self.errors))

    @property
    def counts(self) -> dict[str, int]:
        words = list(self.outcomes.values())
        return {word: words.count(word) for word in sorted(set(words))}

    @property
    def not_passed(self) -> dict[str, str]:
        return {name: word for name, word in self.outcomes.items() if word != "passed"}

    def message(self, name: str) -> str:
        """The failure text or reason of the one test whose id ends so."""
        (found,) = (text for each, text in self.messages.items() if each.endswith(name))
        return found

    def loads(self) -> list[str]:
        """The engines loaded, in order, by role."""
        return [each["role"] for each in self.commands if each["op"] == "load"]

    def passes(self, workload: str) -> list[str]:
        """The timed passes over a workload, in order, by role; warm-ups are left out."""
        name = f"{workload}.jsonl"
        prompts = [
            json.loads(line)["messages"]
            for line in (self.folder / "suites" / name).read_text().splitlines()[1:]
        ]
        return [
            each["role"]
            for each in self.commands
            if each["op"] == "generate"
            and [request["messages"] for request in each["command"]["requests"]] == prompts
            and "min_tokens" not in each["command"]["requests"][0]
            and each["command"]["circumstance"] is None
        ]

    @property
    def section(self) -> list[str]:
        """The lines of our summary section."""
        starts = [at for at, line in enumerate(self.lines) if "speculative decoding gate" in line]
        if not starts:
            return []
        rest = self.lines[starts[0] + 1 :]
        ends = [at for at, line in enumerate(rest) if line.startswith("===")]
        return list(rest[: ends[0]] if ends else rest)

    @property
    def report(self) -> Any:
        return json.loads((self.folder / ".specdec/report.json").read_text())


class Recorder:
    """A pytest plugin: each test's outcome and message."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        self.messages: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.removeprefix("suites/")
        outcome: str = report.outcome
        if report.failed and report.when != "call":
            outcome = "error"
        if report.when == "call" or outcome != "passed":
            self.outcomes[name] = outcome
        if outcome in ("failed", "error"):
            self.messages[name] = report.longreprtext
        elif outcome == "skipped" and isinstance(report.longrepr, tuple):
            self.messages[name] = report.longrepr[2]


class Project:
    """A folder with `specdec.toml`, a model folder and suites, and pytest over it."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self._pytester = pytester
        self._monkeypatch = monkeypatch
        self.folder = pytester.path
        self.log = self.folder / "engine.log"
        for name in ("CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("FAKE_ENGINE_LOG", str(self.log))
        # No session that runs beside the tests is waited for.
        monkeypatch.setenv("SPECDEC_LOCKS", str(self.folder))
        # Looking through all packages of an environment for plugins takes longer than a session.
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        self.python = self.folder / "fake-python"
        self.interpreter("fake-python")
        self.file(
            "pytest.ini",
            f"[pytest]\naddopts = -p pytest_specdec.plugin\nspecdec_python = {self.python}\n",
        )
        self.file("model/config.json", "{}").file("model/model.safetensors", "")
        self.profiles(fast=FAST).fake()

    def file(self, path: str, text: str) -> Self:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return self

    def interpreter(self, path: str, *, role: str | None = None) -> Self:
        """Writes an interpreter of the fake engine; `role` is that of the one engine it is for."""
        own = "" if role is None else f"export FAKE_ENGINE_ROLE={role}\n"
        # -I -S: the standard library is all it needs, and it starts in half the time.
        start = f'exec "{sys.executable}" -I -S "{ENGINE}" "$@"\n'
        self.file(path, f"#!/bin/sh\n{own}{start}")
        (self.folder / path).chmod(0o755)
        return self

    def env(self, **variables: str) -> Self:
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)
        return self

    def fake(self, **settings: Any) -> Self:
        """How the fake engines behave from now on."""
        return self.env(FAKE_ENGINE=json.dumps(settings))

    def profiles(self, *, default: Mapping[str, str] | None = None, **tables: Any) -> Self:
        """Writes `specdec.toml`; the tables are profiles by name."""
        data = {"profiles": tables, **({} if default is None else {"default": default})}
        return self.file("specdec.toml", "\n".join(_toml(data)) + "\n")

    def profile(self, **changes: Any) -> Self:
        """The one profile `fast`, changed."""
        return self.profiles(fast={**FAST, **changes})

    def workload(self, name: str, *prompts: Any, folder: str = "suites", **header: Any) -> Self:
        """Writes a workload; a prompt is an id or a dictionary of fields."""
        defaults = {"max_tokens": 40, **header.pop("defaults", {})}
        rows: list[Any] = [{"workload": header, "defaults": defaults}]
        for prompt in prompts:
            fields = {"id": prompt} if isinstance(prompt, str) else dict(prompt)
            content = fields.pop("content", f"Say something about {fields['id']}.")
            rows.append({"messages": [{"role": "user", "content": content}], **fields})
        return self.file(f"{folder}/{name}.jsonl", "\n".join(map(json.dumps, rows)) + "\n")

    def run(self, *arguments: str) -> Result:
        """pytest in this process."""
        recorder = Recorder()
        seen, before = len(self.commands()), self._reports()
        result = self._pytester.runpytest_inprocess(*arguments, plugins=[recorder])
        for path, text in self._reports().items() - before.items():
            assert report_defect(json.loads(text)) is None, path
        return Result(
            exit_code=int(result.ret),
            outcomes=recorder.outcomes,
            messages=recorder.messages,
            lines=result.outlines,
            errors=result.errlines,
            commands=self.commands()[seen:],
            folder=self.folder,
        )

    def _reports(self) -> dict[Path, str]:
        """The text of every `report.json` of the project."""
        return {path: path.read_text() for path in self.folder.rglob("report.json")}

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """pytest in a process of its own, not waited for."""
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def run_subprocess(self, *arguments: str) -> Result:
        """pytest in a process of its own; no outcomes by test."""
        seen = len(self.commands())
        result = self._pytester.runpytest_subprocess(*arguments)
        return Result(
            exit_code=int(result.ret),
            outcomes={},
            messages={},
            lines=result.outlines,
            errors=result.errlines,
            commands=self.commands()[seen:],
            folder=self.folder,
        )

    def record(self, *arguments: str) -> Self:
        """Stores baselines, which must succeed."""
        result = self.run("suites", "--update-baselines", *arguments)
        assert result.exit_code == 0, result.text
        return self

    def baselines_file(self, profile: str = "fast") -> Path:
        (path,) = (self.folder / "baselines").glob(f"*/{profile}.json")
        return path

    def stored(self, profile: str = "fast") -> Any:
        return json.loads(self.baselines_file(profile).read_text())

    def edit_stored(self, edit: Any, profile: str = "fast") -> Self:
        """Changes the stored file by a function of its data."""
        data = self.stored(profile)
        edit(data)
        self.baselines_file(profile).write_text(json.dumps(data), encoding="utf-8")
        return self

    def report(self) -> Any:
        """The last session's `report.json`."""
        return json.loads((self.folder / ".specdec/report.json").read_text())

    def commands(self) -> list[Mapping[str, Any]]:
        """What all engines were told so far."""
        if not self.log.exists():
            return []
        # An engine may be writing its last line at this moment.
        whole, _, _ = self.log.read_text().rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]

    def living_engines(self) -> list[int]:
        """Process ids of engines, or of what they started, that still run."""
        mark = f"FAKE_ENGINE_LOG={self.log}\0".encode()
        pids = {each["pid"] for each in self.commands()}
        return sorted(pid for pid in pids if mark in _environment(pid))

    def living_processes(self) -> list[int]:
        """Process ids of all that the project's sessions started and that still runs."""
        mark = f"FAKE_ENGINE_LOG={self.log}\0".encode()
        pids = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal()]
        return [pid for pid in pids if mark in _environment(pid)]

    def engines_left_behind(self) -> list[int]:
        """Those that still live in a while: a process that was killed takes a moment to die."""
        deadline = time.monotonic() + DYING_S
        while (living := self.living_engines()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return living


def wide(workload: str, profile: str = "fast") -> dict[str, str]:
    """The checks of a whole workload with nothing special in it, which all pass."""
    return {
        f"{workload}.jsonl::{profile}::{check}": "passed"
        for check in ("exercised", "counts", "drift")
    }


def metrics(workload: str, word: str, profile: str = "fast") -> dict[str, str]:
    """The outcomes of a workload whose metrics all have this one."""
    return {f"{workload}.jsonl::{profile}::{metric}": word for metric in METRICS}


def _environment(pid: int) -> bytes:
    """A process's environment: the id alone may be another's by now. Empty for a dead one."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _toml(value: Mapping[str, Any], *path: str) -> list[str]:
    """Tables as dotted keys, one a line."""
    lines: list[str] = []
    for key, each in value.items():
        here = (*path, f'"{key}"')
        if isinstance(each, Mapping) and each:
            lines += _toml(each, *here)
        else:
            lines.append(f"{'.'.join(here)} = {_inline(each)}")
    return lines


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(key)} = {_inline(each)}" for key, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_inline, value))}]"
    return json.dumps(value)
