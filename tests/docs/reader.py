"""Somebody who types what the documentation says, in a project with the fake engine.

What a line takes for granted is there: the profiles and interpreters that it names, its workloads,
recordings to be replayed, reports to be read, and, for a gate, stored baselines. Every line must
end well.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import pytest

from pytest_specdec.cli import main
from pytest_specdec.hardware import Gpu
from tests.docs.blocks import ROOT, assert_none
from tests.fake_engine.project import FAST, Project

TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
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
UPDATE = ("--update-baselines", "--update-baselines-in-ci")
# Plugins that a project loads for the options of theirs that a line has.
PLUGINS = {"-n": "xdist.plugin", "--benchmark-json": "pytest_benchmark.plugin"}
GIT_NAME = ("-c", "user.name=reader", "-c", "user.email=reader@localhost")


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
        self._profiles("cpu-profile", device="cpu")
        self._profiles("gpu-profile", device="gpu")
        self.project.workload("sql", PROMPT)

    def types(self, line: str) -> None:
        """One line of a shell, which may hold several commands."""
        for command in line.split("&&"):
            words = shlex.split(command.partition(" >")[0], comments=True)
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                name, _, value = words.pop(0).partition("=")
                self.project.env(**{name: value})
            if words:
                name = PurePath(words[0]).name
                assert name in COMMANDS, f"no test knows this command: {line}"
                COMMANDS[name](self, words[1:])

    def pytest(self, arguments: Sequence[str]) -> None:
        """A session of the gate."""
        options = {each.partition("=")[0] for each in arguments}
        self._grant(arguments, is_gpu="--specdec-gpu" in options)
        about = _about(arguments)
        if any(not (self.project.folder / each).exists() for each in values(arguments, REPLAY)):
            self._session([each.replace(REPLAY, "--specdec-record") for each in arguments], UPDATE)
        elif about not in self.stored and "--update-baselines" not in options:
            self._session(about, UPDATE)
        self.stored.add(about)
        self._session(arguments)

    def pytest_specdec(self, arguments: Sequence[str]) -> None:
        """The command, on what sessions wrote."""
        subcommand, *rest = arguments
        for name in (each for each in rest if "/" in each or subcommand == "compare"):
            path = self.project.folder / name
            if name.startswith("-") or path.exists():
                continue
            if subcommand == "compare" and not path.suffix:
                self._session(["suites", "--specdec-record", name], UPDATE)
            elif path.name == "report.json":
                self._session(["suites", f"--specdec-report={path.parent}"], UPDATE)
        assert main(arguments) == 0

    def pytest_benchmark(self, arguments: Sequence[str]) -> None:
        """The other plugin's own command, on files of it."""
        for name in arguments:
            if name.endswith(".json") and not (self.project.folder / name).exists():
                self.pytest(["suites", f"--benchmark-json={name}"])
        command = [sys.executable, "-m", "pytest_benchmark", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def python(self, arguments: Sequence[str]) -> None:
        """A program of the repository: it is there and says each option that it is given. They
        start engines or train models, and have tests of their own."""
        script, *rest = arguments
        source = (ROOT / script).read_text(encoding="utf-8")
        asked = [name for each in rest for name in re.findall(r"(?<!\w)--[a-z-]+", each)]
        assert_none((each for each in asked if f'"{each}"' not in source), "no such option")

    def make(self, arguments: Sequence[str]) -> None:
        assert_none((each for each in arguments if each not in TARGETS), "no such target")

    def pip(self, arguments: Sequence[str]) -> None:
        """Nothing is installed: the extras are ours."""
        asked = [
            name for each in arguments for name in re.findall(r"[a-z]+", each.partition("[")[2])
        ]
        assert_none((each for each in asked if each not in EXTRAS), "no such extra")

    def editor(self, arguments: Sequence[str]) -> None:
        """A file of the reader's own."""
        (path,) = arguments
        if path.endswith(".jsonl"):
            self._workload(path)

    def git(self, arguments: Sequence[str]) -> None:
        """In a repository of the reader's own, which is there from the first such line on."""
        if not (self.project.folder / ".git").exists():
            subprocess.run(["git", "init", "-q"], check=True)
        done = subprocess.run(
            ["git", *GIT_NAME, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def _session(self, arguments: Sequence[str], more: Sequence[str] = ()) -> None:
        plugins = [
            word
            for option, plugin in PLUGINS.items()
            if any(each.startswith(option) for each in arguments)
            for word in ("-p", plugin)
        ]
        result = self.project.run(*plugins, *arguments, *more)
        assert result.exit_code == 0, f"{shlex.join(arguments)}\n{result.text}"

    def _grant(self, arguments: Sequence[str], *, is_gpu: bool) -> None:
        """Workloads, profiles and interpreters that the line names."""
        if is_gpu:
            self.monkeypatch.setattr("pytest_specdec.hardware.visible_gpus", lambda: (GPU,))
            self.project.fake(versions={"cuda": "13.0"})
        for name in values(arguments, "--specdec-profile"):
            self._profiles(name, device="gpu" if is_gpu else "cpu")
        for name in values(arguments, "--specdec-python"):
            self.project.file(name, self.project.python.read_text())
            (self.project.folder / name).chmod(0o755)
        for path in (each for each in arguments if re.match(r"[\w./-]+\.jsonl\b", each)):
            self._workload(path)

    def _workload(self, path: str) -> None:
        if not (self.project.folder / path).exists():
            place = PurePath(path)
            self.project.workload(place.stem, PROMPT, folder=str(place.parent))

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
        for option in ("--specdec-profile", "--specdec-baselines", "--override-ini", "-o")
        for value in values(arguments, option)
    ]
    gpu = [each for each in arguments if each == "--specdec-gpu"]
    return (*paths, *gpu, *given)


COMMANDS: Mapping[str, Callable[[Reader, Sequence[str]], None]] = {
    "pytest": Reader.pytest,
    "pytest-specdec": Reader.pytest_specdec,
    "pytest-benchmark": Reader.pytest_benchmark,
    "python": Reader.python,
    "make": Reader.make,
    "pip": Reader.pip,
    "git": Reader.git,
    "$EDITOR": Reader.editor,
}
