"""Somebody who does what the documentation says, in a project with the fake engine.

What a session takes for granted is there: the profiles and interpreters that it names, its
workloads, recordings to be replayed and, for a gate, stored baselines. Every session must end well.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import pytest

from pytest_specdec.hardware import Gpu
from tests.fake_engine.project import FAST, Project

GPU = Gpu(
    entry="0",
    uuid="GPU-aa11",
    name="NVIDIA B200",
    compute_capability="10.0",
    memory_gib=180.0,
    power_limit_w=1000.0,
    is_mig=False,
)
PROMPT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
REPLAY = "--specdec-replay"
WORTH_IT = "--specdec-worth-it"
UPDATE = ("--update-baselines", "--update-baselines-in-ci")
# Plugins that a project loads for the options of theirs that a line has.
PLUGINS = {"-n": "xdist.plugin", "--benchmark-json": "pytest_benchmark.plugin"}


@dataclass
class Reader:
    """One reader, who has typed some lines already.

    Attributes:
        stored: what numbers are stored of.
    """

    project: Project
    monkeypatch: pytest.MonkeyPatch
    stored: set[tuple[str, ...]] = field(default_factory=set)
    tables: dict[str, dict[str, object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # pytest-benchmark keeps nothing in a worker, which these tests may run in.
        self.monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
        self._profiles("cpu-profile", device="cpu")
        self._profiles("gpu-profile", device="gpu")
        self.project.workload("sql", PROMPT)

    def gates(self, arguments: Sequence[str]) -> None:
        """A session, and before it what it takes for granted."""
        options = {each.partition("=")[0] for each in arguments}
        self._grant(arguments, is_gpu="--specdec-gpu" in options)
        about = _about(arguments)
        if any(not (self.project.folder / each).exists() for each in values(arguments, REPLAY)):
            self.session([each.replace(REPLAY, "--specdec-record") for each in arguments], UPDATE)
        elif about not in self.stored and not options & {"--update-baselines", WORTH_IT}:
            self.session(about, UPDATE)
        if WORTH_IT not in options:  # which stores nothing and reads nothing stored
            self.stored.add(about)
        self.session(arguments)

    def session(self, arguments: Sequence[str], more: Sequence[str] = ()) -> None:
        """One that must end well, without more ado."""
        plugins = [
            word
            for option, plugin in PLUGINS.items()
            if any(each.startswith(option) for each in arguments)
            for word in ("-p", plugin)
        ]
        result = self.project.run(*plugins, *arguments, *more)
        assert result.exit_code == 0, f"{shlex.join(arguments)}\n{result.text}"

    def workload(self, path: str) -> None:
        """Writes it, if it is not there."""
        if not (self.project.folder / path).exists():
            place = PurePath(path)
            self.project.workload(place.stem, PROMPT, folder=str(place.parent))

    def _grant(self, arguments: Sequence[str], *, is_gpu: bool) -> None:
        """Workloads, profiles and interpreters that the line names."""
        if is_gpu:
            self.monkeypatch.setattr("pytest_specdec.hardware.visible_gpus", lambda: (GPU,))
            self.project.fake(versions={"cuda": "13.0"})
        for name in values(arguments, "--specdec-profile"):
            self._profiles(name, device="gpu" if is_gpu else "cpu")
        for setting, _, value in (each.partition("=") for each in values(arguments, "-o")):
            if setting == "specdec_config":
                text = (self.project.folder / "specdec.toml").read_text(encoding="utf-8")
                self.project.file(value, text)
        for name in values(arguments, "--specdec-python"):
            self.project.file(name, self.project.python.read_text())
            (self.project.folder / name).chmod(0o755)
        for path in (each for each in arguments if re.match(r"[\w./-]+\.jsonl\b", each)):
            self.workload(path.partition("::")[0])

    def _profiles(self, name: str, *, device: str) -> None:
        if name in self.tables:
            return
        self.tables[name] = {**FAST, "device": device, "num_blocks": 2, "num_looks": 1}
        default = {"cpu": "cpu-profile", "gpu": "gpu-profile"}
        self.project.profiles(
            default={key: each for key, each in default.items() if each in self.tables},
            **self.tables,
        )


def values(arguments: Sequence[str], option: str) -> Iterator[str]:
    """What the option is given, as `--option VALUE` or `--option=VALUE`."""
    for at, each in enumerate(arguments):
        name, is_joined, value = each.partition("=")
        if name == option:
            yield value if is_joined else arguments[at + 1]


def _about(arguments: Sequence[str]) -> tuple[str, ...]:
    """What a session's numbers are stored of: the paths, and options that say of whom and where."""
    paths = [each for each in arguments if re.match(r"[\w./-]+\.jsonl\b|suites$", each)]
    given = [
        f"{option}={value}"
        for option in ("--specdec-profile", "--specdec-baselines", "-o")
        for value in values(arguments, option)
    ]
    gpu = [each for each in arguments if each == "--specdec-gpu"]
    return (*paths, *gpu, *given)
