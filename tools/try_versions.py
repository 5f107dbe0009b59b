"""Tries the engine's program on several versions of vLLM: a tiny gate on each, from one pytest.

    .venv/bin/python tools/try_versions.py 0.27.1 0.28.0 0.29.0 0.31.0 0.32.0

The first version records, every later one is judged by its numbers. Missing environments are made.
It ends with a row for each version and workload, and with 1 if one of them did not pass.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

if not __package__:  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.demonstration import (
    PYTHON,
    ROOT,
    TINY_PROFILE,
    DemonstrationError,
    engine_python,
    run_shown,
    say,
    tiny_project,
    tiny_workloads,
)

KNOWN = ("0.27.1", "0.28.0", "0.29.0", "0.31.0", "0.32.0")
COLUMNS = ("vllm", "workload", "in flight", "identical", "rate", "counted by", "own", "verdict")


def rows(report: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """A row for each workload of a `report.json`; `own`: prompts with counts of their own."""
    for profile in report["profiles"]:
        for workload in profile["workloads"]:
            measured = workload["measurement"]
            prompts, drafts = measured["prompts"], measured["drafts"]
            num_own = sum(prompt["drafts"] is not None for prompt in prompts)
            num_drafted = drafts["num_draft_tokens"] if drafts else 0
            rate = f"{drafts['num_accepted_tokens'] / num_drafted:.3f}" if num_drafted else "-"
            yield (
                profile["versions"]["vllm"],
                workload["name"],
                str(measured["concurrency"]),
                f"{workload['num_identical']} of {workload['num_greedy']}",
                rate,
                str(measured["drafts_source"]),
                f"{num_own} of {len(prompts)}",
                workload["verdict"],
            )


def aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """The table's lines, in columns."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]


def gate(version: str, project: Path) -> tuple[int, list[tuple[str, ...]]]:
    """The tiny gate on one version: pytest's exit status, and the report's rows."""
    python = ROOT / engine_python(version)
    command = [str(ROOT / PYTHON), "-m", "pytest", "suites", "--specdec-python", str(python)]
    command += [f"--specdec-report={version}", "--update-baselines=new", "--update-baselines-in-ci"]
    status = run_shown(command, cwd=project)
    report = project / version / "report.json"
    if not report.exists():
        return status, [(version, *["-"] * (len(COLUMNS) - 2), "nothing ran")]
    return status, list(rows(json.loads(report.read_text(encoding="utf-8"))))


def main(arguments: list[str] | None = None) -> int:
    """Tries each version."""
    parser = argparse.ArgumentParser(description="A tiny gate on several versions of vLLM.")
    parser.add_argument("versions", nargs="*", default=KNOWN, help=f"default: {' '.join(KNOWN)}")
    versions = parser.parse_args(arguments).versions
    table: list[tuple[str, ...]] = [COLUMNS]
    failed = []
    try:
        with tempfile.TemporaryDirectory(prefix="specdec-versions-") as folder:
            project = tiny_project(
                Path(folder) / "project", tiny_workloads(), profiles=TINY_PROFILE
            )
            for version in versions:
                status, found = gate(version, project)
                table += found
                failed += [version] if status else []
    except DemonstrationError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    for line in aligned(table):
        say(line)
    say(f"did not pass: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
