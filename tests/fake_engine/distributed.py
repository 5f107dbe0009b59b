"""A project with two profiles, and its sessions under pytest-xdist."""

from __future__ import annotations

import re
from typing import Any

from tests.fake_engine.project import FAST, Project, Result

PROFILES = ("--specdec-profile=fast", "--specdec-profile=other")
OWN = """
import pytest

def test_own(baseline_engine): assert baseline_engine.role == "baseline"

@pytest.mark.specdec("code.jsonl")
def test_runs(runs): assert runs.num_loads == 1

@pytest.mark.parametrize("name", ["fast", "other"])
def test_plain(name): pass

@pytest.mark.xdist_group("together")
def test_grouped(): pass
"""


def run(project: Project, num_workers: int, *arguments: str) -> Result:
    """A session with that many workers."""
    return project.run("suites", *distributed(num_workers, *arguments))


def distributed(num_workers: int, *arguments: str) -> tuple[str, ...]:
    return ("-p", "xdist.plugin", f"-n{num_workers}", *arguments)


def two_profiles(project: Project) -> Project:
    """Two profiles and three workloads; the numbers of one workload are stored."""
    project.profiles(fast=FAST, other={**FAST, "num_blocks": 4})
    sampled = {"id": "drawn", "temperature": 1.0, "max_tokens": 30}
    project.workload("code", "one", "two").workload("story", "one").workload("drawn", sampled)
    project.file("suites/test_own.py", OWN)
    return project.record(*PROFILES, "-k", "code")


def told(result: Result) -> dict[str, str]:
    """The messages, without the line that pytest-xdist puts before a failure."""
    return {name: re.sub(r"^\[gw\d+\] .*\n", "", text) for name, text in result.messages.items()}


def without_times(value: Any) -> Any:
    """What a report says, without what the clock and the rest of the machine had to do with."""
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if key != "conditions"}
    return [without_times(each) for each in value] if isinstance(value, list) else value
