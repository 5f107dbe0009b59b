"""Real vLLM with the small real model. Where either is missing these tests fail: a gate whose own
engine was never started has not been tested."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.engines.pair import EnginePair
from pytest_specdec.profile import Profile, read_profiles
from pytest_specdec.workload import Workload, read_workload
from tests.engines.workers import group_ends

ROOT = Path(__file__).resolve().parents[2]
PROFILE = "smollm2-ngram"
MAX_MODEL_LEN = 512

LOOP = "```python\nfor item in items:\n    total = total + item\n    print(item, total)\n```"
COPY = f"Rename `total` to `count`. Reply with the code only.\n{LOOP}"
PROMPTS = {
    "rename": COPY,
    "repeat": "Repeat this list: red, green, blue, red, green, blue, red, green, blue.",
    "story": "Write a story about a lighthouse.",
    "count": "Count from 1 to 20.",
}


def row(name: str, content: str, **fields: Any) -> dict[str, Any]:
    """One line of a workload."""
    messages = [{"role": "user", "content": content}]
    return {"id": name, "messages": messages, "max_tokens": 24, **fields}


def workload(
    folder: Path, name: str, rows: Sequence[Any], *, concurrency: int = 1, **header: Any
) -> Workload:
    """A workload file, written and read."""
    path = folder / f"{name}.jsonl"
    lines = [{"workload": {"concurrency": concurrency, **header}}, *rows]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return read_workload(path)


@dataclass
class Recorder:
    """A watch that keeps what it is told."""

    phases: list[str] = field(default_factory=list)

    def phase(self, text: str) -> None:
        self.phases.append(text)

    def progress(self, text: str) -> None:
        """Nobody looks."""


@pytest.fixture(scope="session")
def small_profile() -> Profile:
    """This repository's own profile, with a short context and few passes."""
    profile = read_profiles(ROOT / "specdec.toml").chosen(PROFILE)
    make = f"make it with: {profile.setup}"
    if not (Path(profile.target_model) / "model.safetensors").is_file():
        pytest.fail(f"no model in: {profile.target_model}\n{make}", pytrace=False)
    found = subprocess.run(
        [sys.executable, "-c", "import importlib.util as i; exit(not i.find_spec('vllm'))"],
        check=False,
    )
    if found.returncode:
        pytest.fail(f"no vLLM under: {sys.executable}\n{make}", pytrace=False)
    arguments = {**profile.engine_args, "max_model_len": MAX_MODEL_LEN, "max_num_seqs": 8}
    return replace(profile, engine_args=arguments, num_blocks=1)


@pytest.fixture(scope="session")
def watch() -> Recorder:
    """What the shared pair's watch was told."""
    return Recorder()


@pytest.fixture(scope="session")
def pair(
    small_profile: Profile, watch: Recorder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EnginePair]:
    """Both engines, loaded once for all tests that leave them whole."""
    shared = EnginePair(
        small_profile,
        python=Path(sys.executable),
        log_folder=tmp_path_factory.mktemp("logs"),
        watch=watch,
    )
    try:
        yield shared
    finally:
        leaders = [engine.pid for engine in shared._engines.values()]
        shared.close()
    assert all(group_ends(leader, within_s=2) for leader in leaders)
