"""What a shell makes of the documentation's lines: each command has a function here, which runs it
or, where it would install, build or start engines, sees that there is what it asks for.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import PurePath

from pytest_specdec.cli import main
from tests.docs.blocks import ROOT, assert_none
from tests.docs.reader import UPDATE, Reader

TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
GIT_NAME = ("-c", "user.name=reader", "-c", "user.email=reader@localhost")


def type_line(reader: Reader, line: str) -> None:
    """One line of a shell, which may hold several commands."""
    for command in line.split("&&"):
        words = shlex.split(command.partition(" >")[0], comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            name, _, value = words.pop(0).partition("=")
            reader.project.env(**{name: value})
        if words:
            name = PurePath(words[0]).name
            assert name in COMMANDS, f"no test knows this command: {line}"
            COMMANDS[name](reader, words[1:])


def pytest_specdec(reader: Reader, arguments: Sequence[str]) -> None:
    """The command, on what sessions wrote."""
    subcommand, *rest = arguments
    for name in (each for each in rest if "/" in each or subcommand == "compare"):
        path = reader.project.folder / name
        if name.startswith("-") or path.exists():
            continue
        if subcommand == "compare" and not path.suffix:
            reader.session(["suites", "--specdec-record", name], UPDATE)
        elif path.name == "report.json":
            reader.session(["suites", f"--specdec-report={path.parent}"], UPDATE)
    assert main(arguments) == 0


def pytest_benchmark(reader: Reader, arguments: Sequence[str]) -> None:
    """The other plugin's own command, on files of it."""
    for name in arguments:
        if name.endswith(".json") and not (reader.project.folder / name).exists():
            reader.gates(["suites", f"--benchmark-json={name}"])
    command = [sys.executable, "-m", "pytest_benchmark", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def python(reader: Reader, arguments: Sequence[str]) -> None:
    """A program of the repository: it is there and says each option that it is given. They
    start engines or train models, and have tests of their own."""
    script, *rest = arguments
    if script == "-m":
        assert find_spec(rest[0]) is not None, f"no such module: {rest[0]}"
        return
    source = (ROOT / script).read_text(encoding="utf-8")
    asked = [name for each in rest for name in re.findall(r"(?<!\w)--[a-z-]+", each)]
    assert_none((each for each in asked if f'"{each}"' not in source), "no such option")


def make(reader: Reader, arguments: Sequence[str]) -> None:
    assert_none((each for each in arguments if each not in TARGETS), "no such target")


def pip(reader: Reader, arguments: Sequence[str]) -> None:
    """Nothing is installed: the extras are ours."""
    asked = [name for each in arguments for name in re.findall(r"[a-z]+", each.partition("[")[2])]
    assert_none((each for each in asked if each not in EXTRAS), "no such extra")


def editor(reader: Reader, arguments: Sequence[str]) -> None:
    """A file of the reader's own."""
    (path,) = arguments
    if path.endswith(".jsonl"):
        reader.workload(path)


def git(reader: Reader, arguments: Sequence[str]) -> None:
    """In a repository of the reader's own, which is there from the first such line on; so are
    stored baselines."""
    if "baselines" in arguments and not (reader.project.folder / "baselines").exists():
        reader.session(["suites"], UPDATE)
    if not (reader.project.folder / ".git").exists():
        subprocess.run(["git", "init", "-q"], check=True)
    done = subprocess.run(
        ["git", *GIT_NAME, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


COMMANDS: Mapping[str, Callable[[Reader, Sequence[str]], None]] = {
    "pytest": Reader.gates,
    "pytest-specdec": pytest_specdec,
    "pytest-benchmark": pytest_benchmark,
    "python": python,
    "python3": python,
    "make": make,
    "pip": pip,
    "git": git,
    "$EDITOR": editor,
}
