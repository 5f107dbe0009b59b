"""Repeated gates with nothing changed, on real engines: how often is the gate wrong here?

    .venv/bin/python benchmarks/repeated.py --gates 10     minutes

One predictable and one open-ended workload are recorded once; then whole sessions gate them against
that one stored baseline, each with engines started anew. No `failed` may come of it. The CPU that
others used meanwhile stands beside each speedup.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

if not __package__:  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.overhead import WORKLOADS, shortened
from pytest_specdec.conditions import Conditions, together
from tools.demonstration import ROOT, tiny_project

COLUMNS = (
    "gate",
    "workload",
    "acceptance",
    "speedup",
    "now",
    "interval",
    "stored",
    "floor",
    "blocks",
    "used by others",
    "load average",
)


def gate(project: Path, *arguments: str) -> dict[str, Any]:
    """One session, and its report."""
    report = project / ".specdec" / "report.json"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "suites", *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    if not report.exists():
        raise SystemExit(f"the gate did not run: exit status {done.returncode}\n{done.stdout}")
    read: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return read


def rows(report: dict[str, Any], number: int) -> list[tuple[str, ...]]:
    """A line for each workload."""
    lines: list[tuple[str, ...]] = []
    for workload in report["profiles"][0]["workloads"]:
        acceptance, speedup = (workload["verdicts"][each] for each in ("acceptance", "speedup"))
        runs = workload["runs"]
        conditions = together([Conditions.from_json(each) for each in runs["conditions"]])
        assert conditions is not None
        lines.append(
            (
                str(number),
                workload["name"],
                acceptance["kind"],
                speedup["kind"],
                f"{speedup['now']:.3f}",
                f"{speedup['low']:.3f} to {speedup['high']:.3f}",
                f"{speedup['stored']:.3f}",
                f"{speedup['floor']:.3f}",
                str(len(runs["order"]) // 4),
                f"{100 * (conditions.other_cpu_share or 0):.1f}%",
                f"{conditions.load_average}",
            )
        )
    return lines


def main(arguments: list[str] | None = None) -> int:
    """0 when no verdict of any gate is `failed`."""
    parser = argparse.ArgumentParser(description="Repeated gates with nothing changed.")
    parser.add_argument("--gates", type=int, default=10)
    parser.add_argument("--prompts", type=int, default=4, help="of each workload; 0: all")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="specdec-repeated-"))
    try:
        project = tiny_project(
            folder / "project",
            {Path(path).stem: shortened(ROOT / path, options.prompts) for path in WORKLOADS},
            profiles=(ROOT / "specdec.toml").read_text(encoding="utf-8"),
        )
        gate(project, "--update-baselines", "--update-baselines-in-ci")
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
        failed = 0
        for number in range(1, options.gates + 1):
            for row in rows(gate(project), number):
                failed += row[2:4].count("failed")
                print(f"| {' | '.join(row)} |", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"failed verdicts: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
