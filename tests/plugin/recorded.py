"""A project's recordings, for tests: where they are, what they hold, and changing them."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fake_engine.project import Project

RECORD, REPLAY = "--specdec-record=rec", "--specdec-replay=rec"
Edit = Callable[[list[dict[str, Any]]], Any]


def without_engines(project: Project) -> Project:
    """From now on, starting an engine is an error."""
    return project.file("fake-python", "#!/bin/sh\nexit 1\n")


def recording(project: Project, workload: str = "code", profile: str = "fast") -> Path:
    return project.folder / "rec" / profile / f"{workload}.jsonl.gz"


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def edit(path: Path, change: Edit) -> None:
    """Changes a file's lines and closes it again as it should be."""
    *lines, _ = read(path)
    change(lines)
    rows = [json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines]
    digest = hashlib.sha256(b"".join(rows)).hexdigest()
    end = json.dumps({"what": "end", "sha256": digest}).encode()
    path.write_bytes(gzip.compress(b"".join(rows) + end))
