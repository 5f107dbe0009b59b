"""What the plugin costs: the gate beside a bare script that does the same with vLLM, and
`pytest --collect-only` of a project that has the plugin and does not use it.

    .venv/bin/python benchmarks/overhead.py gate       minutes; wants idle cores
    .venv/bin/python benchmarks/overhead.py collect    about a minute

Both take turns with what they are compared with, so that a drift of the machine falls on both.
Processor time stands beside wall time: it says what it would be where nothing else ran.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

if not __package__:  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pytest_specdec.engines.loads import ABBA
from pytest_specdec.engines.passes import WARM_UP_TOKENS
from pytest_specdec.engines.worker_process import COMMON_ENV, DEVICE_ENV
from pytest_specdec.generation import ROLES
from pytest_specdec.profile import Profile, read_profiles
from pytest_specdec.workload import Workload, read_workload
from tools.demonstration import ROOT, tiny_project

BARE = Path(__file__).with_name("bare.py")
WORKLOADS = ("suites/predictable/sql.jsonl", "suites/open_ended/story.jsonl")
MAX_RATIO = 1.05
MAX_COLLECT_MS = 20.0
TURNS = ("gate", "bare", "bare", "gate")
PLUGINS = {
    "without": (),
    "pytest-specdec": ("-p", "pytest_specdec.plugin"),
    "pytest-benchmark": ("-p", "pytest_benchmark.plugin"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A command that has ended, and all it started: wall and processor time."""

    wall_s: float
    cpu_s: float
    status: int
    output: str


def timed(
    command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Timed:
    """Runs a command to its end."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command,
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    wall_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Timed(wall_s=wall_s, cpu_s=cpu_s, status=done.returncode, output=done.stdout)


def shortened(path: Path, num_prompts: int) -> list[dict[str, Any]]:
    """The first prompts of a workload file, under its header."""
    objects = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    num_headers = sum("id" not in each for each in objects)
    return objects[: num_headers + num_prompts] if num_prompts else objects


def plan_of(profile: Profile, workloads: Sequence[Workload]) -> dict[str, Any]:
    """What the bare script does: the gate's engines, requests, warm-up and order of passes.

    The engines get the profile's arguments; the counters that the gate turns on are its own cost.
    """
    preloaded = [
        str(Path(str(file.locate())).resolve())
        for file in importlib.metadata.files("intel-openmp") or []
        if file.name == "libiomp5.so"
    ]
    env = {**COMMON_ENV, **DEVICE_ENV[profile.device], **profile.env}
    return {
        "python": sys.executable,
        "engines": {role: profile.engine_arguments(role) for role in ROLES},
        "env": {**env, "LD_PRELOAD": ":".join(preloaded)},
        "order": ABBA * profile.num_blocks,
        "workloads": [
            {
                "concurrency": workload.concurrency,
                "requests": [dict(prompt.request) for prompt in workload.prompts],
                "warm_up": [_warm_up(prompt.request) for prompt in workload.prompts],
            }
            for workload in workloads
        ],
    }


def _warm_up(request: Mapping[str, Any]) -> dict[str, Any]:
    tokens = min(WARM_UP_TOKENS, request["max_tokens"])
    return {**request, "max_tokens": tokens, "min_tokens": 0}


def run_gate(project: Path) -> dict[str, float]:
    """One session of the gate: all of it, and the part in which its engines generated.

    Numbers that are to be stored get all passes, each time. Other plugins that happen to be
    installed are left out: what they cost is not the gate's.
    """
    command = [sys.executable, "-m", "pytest", *PLUGINS["pytest-specdec"], "suites"]
    done = timed(
        [*command, "--update-baselines", "--update-baselines-in-ci"],
        cwd=project,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    report = project / ".specdec" / "report.json"
    if done.status not in (0, 1) or not report.exists():
        raise SystemExit(f"the gate did not run: exit status {done.status}\n{done.output}")
    passes = [
        each
        for profile in json.loads(report.read_text(encoding="utf-8"))["profiles"]
        for workload in profile["workloads"]
        for role in ROLES
        for each in workload["runs"][role]["passes"]
    ]
    report.unlink()
    tokens = sum(len(answer["token_ids"]) for each in passes for answer in each["generations"])
    return {
        "total_s": done.wall_s,
        "passes_s": sum(each["wall_s"] for each in passes),
        "cpu_s": done.cpu_s,
        "num_output_tokens": tokens,
        "exit_status": done.status,
    }


def run_bare(plan: Path) -> dict[str, float]:
    """The bare script, likewise."""
    done = timed([sys.executable, str(BARE), str(plan)])
    if done.status != 0:
        raise SystemExit(f"the bare script did not run: exit status {done.status}\n{done.output}")
    said = json.loads(done.output)
    return {
        "total_s": done.wall_s,
        "passes_s": said["wall_s"],
        "cpu_s": done.cpu_s,
        "num_output_tokens": said["num_output_tokens"],
        "exit_status": done.status,
    }


def measure_gate(
    folder: Path, *, paths: Sequence[str], num_prompts: int, repetitions: int
) -> tuple[float, float]:
    """Prints a line for each run and returns the ratios of the sums: wall and processor time."""
    project = tiny_project(
        folder / "project",
        {Path(path).stem: shortened(ROOT / path, num_prompts) for path in paths},
        profiles=(ROOT / "specdec.toml").read_text(encoding="utf-8"),
    )
    profile = read_profiles(project / "specdec.toml").defaults_for("cpu")[0]
    workloads = [read_workload(path) for path in sorted((project / "suites").iterdir())]
    plan = folder / "plan.json"
    plan.write_text(json.dumps(plan_of(profile, workloads)), encoding="utf-8")
    taken: dict[str, list[dict[str, float]]] = {"gate": [], "bare": []}
    print("        total   passes  the rest  processor  output tokens  exit status")
    for turn in TURNS * repetitions:
        each = run_gate(project) if turn == "gate" else run_bare(plan)
        taken[turn].append(each)
        _print_run(turn, each)
    sums = {
        turn: {key: sum(each[key] for each in runs) for key in runs[0]}
        for turn, runs in taken.items()
    }
    for turn, both in sums.items():
        _print_run(f"{turn}s", both)
    if len({each["num_output_tokens"] for runs in taken.values() for each in runs}) > 1:
        raise SystemExit("the runs differ in output tokens: they did not do the same work")
    wall, cpu = (sums["gate"][key] / sums["bare"][key] for key in ("total_s", "cpu_s"))
    return wall, cpu


def _print_run(name: str, run: Mapping[str, float]) -> None:
    rest_s = run["total_s"] - run["passes_s"]
    seconds = (run["total_s"], run["passes_s"], rest_s, run["cpu_s"])
    figures = "".join(
        f"{each:{width}.1f} s" for each, width in zip(seconds, (6, 7, 8, 9), strict=True)
    )
    tokens, status = round(run["num_output_tokens"]), round(run["exit_status"])
    print(f"{name:<6}{figures}{tokens:15}{status:13}", flush=True)


def measure_collect(folder: Path, *, repetitions: int) -> dict[str, list[tuple[float, float]]]:
    """Milliseconds of wall and of processor time that each plugin adds to collecting a project that
    does not use it, one pair for each round; each round begins with another plugin."""
    (folder / "test_trivial.py").write_text(
        "".join(f"def test_{number}():\n    pass\n\n\n" for number in range(5))
    )
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    names = list(PLUGINS)
    for name in names:
        _collect(folder, PLUGINS[name])  # byte code and file caches
    added: dict[str, list[tuple[float, float]]] = {name: [] for name in names[1:]}
    for number in range(repetitions):
        first = number % len(names)
        took = {name: _collect(folder, PLUGINS[name]) for name in names[first:] + names[:first]}
        plain = took["without"]
        for name, differences in added.items():
            wall_s = took[name].wall_s - plain.wall_s
            differences.append((wall_s * 1000, (took[name].cpu_s - plain.cpu_s) * 1000))
    return added


def _collect(folder: Path, options: Sequence[str]) -> Timed:
    done = timed(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *options],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": ""},
    )
    if done.status != 0:
        raise SystemExit(f"pytest did not collect:\n{done.output}")
    return done


def report_gate(folder: Path, options: argparse.Namespace) -> bool:
    """Measures, and says whether the goal is met."""
    wall, cpu = measure_gate(
        folder,
        paths=options.workloads,
        num_prompts=options.prompts,
        repetitions=options.repetitions or 1,
    )
    print(f"gate over bare script: {wall:.3f} in wall time (goal: {MAX_RATIO} or less)")
    print(f"gate over bare script: {cpu:.3f} in processor time")
    return wall <= MAX_RATIO


def report_collect(folder: Path, options: argparse.Namespace) -> bool:
    """Measures, and says whether the goal is met."""
    added = measure_collect(folder, repetitions=options.repetitions or 30)
    medians: dict[str, float] = {}
    print(f"added to `pytest --collect-only`, median of {len(added['pytest-specdec'])} rounds:")
    for name, differences in added.items():
        walls, cpus = zip(*differences, strict=True)
        low, medians[name], high = quantiles(walls, n=4)
        print(
            f"  {name:<17}{medians[name]:6.1f} ms of wall time (half of the rounds {low:.1f} to "
            f"{high:.1f}), {median(cpus):.1f} ms of processor time"
        )
    print(f"goal of pytest-specdec: under {MAX_COLLECT_MS:g} ms of wall time")
    return medians["pytest-specdec"] < MAX_COLLECT_MS


def main(arguments: list[str] | None = None) -> int:
    """0 when the goal is met."""
    parser = argparse.ArgumentParser(description="What the plugin costs.")
    parser.add_argument("what", choices=["gate", "collect"])
    parser.add_argument("--workloads", nargs="+", default=WORKLOADS, metavar="FILE")
    parser.add_argument(
        "--prompts", type=int, default=0, help="of each workload; 0 (the default): all"
    )
    parser.add_argument(
        "--repetitions", type=int, help="of gate, bare, bare, gate (1), or rounds of collect (30)"
    )
    options = parser.parse_args(arguments)
    report = report_gate if options.what == "gate" else report_collect
    folder = Path(tempfile.mkdtemp(prefix="specdec-overhead-"))
    try:
        return 0 if report(folder, options) else 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
