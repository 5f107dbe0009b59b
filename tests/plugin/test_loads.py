"""`num_loads`: engines are started again for more passes, each time for all workloads together."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.engines.loads import ABBA
from tests.fake_engine.project import Project, Result

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
BOTH = ["baseline", "speculative"]
# Relative to each other, what the engine takes in one load after the other.
UNLIKE_LOADS = [1.0, 0.7, 1.4]


def names(workload: str) -> list[str]:
    return [
        f"{workload}.jsonl::fast::{each}"
        for each in ("identical[one]", "exercised", "counts", "drift", "acceptance", "speedup")
    ]


def runs(result: Result) -> dict[str, Any]:
    (profile,) = result.report["profiles"]
    return {each["name"]: each["runs"] for each in profile["workloads"]}


@pytest.fixture
def two(project: Project) -> Project:
    """Three loads at most, of one block each; they are looked at from two on."""
    project.profile(num_loads=3, num_blocks=1)
    return project.workload("code", EXACT).workload("story", "one")


@pytest.mark.parametrize("layout", ["concurrent", "sequential"])
def test_what_is_to_be_stored_gets_all_loads(two: Project, layout: str) -> None:
    two.profile(num_loads=3, num_blocks=1, layout=layout)
    result = two.run("suites", "--update-baselines")
    assert result.counts == {"passed": 12}
    # Once each for both workloads.
    assert result.loads() == BOTH * 3
    assert result.report["profiles"][0]["num_starts"] == {"baseline": 3, "speculative": 3}
    once = [*ABBA] if layout == "concurrent" else sorted(ABBA)
    assert result.passes("code") == result.passes("story") == once * 3
    assert [each["num_loads"] for each in runs(result).values()] == [3, 3]
    assert runs(result)["code"]["order"] == once * 3
    for each in two.stored()["workloads"].values():
        assert [len(load["log_ratios"]) for load in each["speedup"]["loads"]] == [2, 2, 2]
        assert (each["provenance"]["num_loads"], each["provenance"]["num_passes"]) == (3, 2)


@pytest.mark.parametrize("layout", ["concurrent", "sequential"])
def test_loads_stop_when_all_workloads_are_decided(two: Project, layout: str) -> None:
    two.profile(num_loads=3, num_blocks=1, layout=layout).record()
    result = two.run("suites")
    assert result.counts == {"passed": 12}
    assert result.loads() == BOTH * 2
    assert [each["num_loads"] for each in runs(result).values()] == [2, 2]
    failed = two.fake(speculative={"step_ms": 20.0}).run("suites", "-k", "code")
    assert failed.not_passed == {"code.jsonl::fast::speedup": "failed"}
    assert failed.loads() == BOTH * 2


@pytest.mark.parametrize("num_blocks", [2, 3])
def test_blocks_of_one_load_are_no_loads(two: Project, num_blocks: int) -> None:
    two.profile(num_loads=3, num_blocks=num_blocks).record()
    result = two.run("suites")
    assert result.counts == {"passed": 12}
    assert result.loads() == BOTH * 2
    assert result.passes("code") == [*ABBA] * num_blocks * 2


def test_loads_that_differ_go_on_to_the_last(two: Project) -> None:
    two.record()
    result = two.fake(speculative={"load_factors": UNLIKE_LOADS}).run("suites", "-k", "code")
    assert result.loads() == BOTH * 3
    assert result.not_passed == {"code.jsonl::fast::speedup": "skipped"}
    message = result.message("speedup")
    assert message.startswith("Skipped: inconclusive: speedup of `code`; ")
    assert "`num_loads" in message.rpartition("; ")[2]


def test_a_refused_workload_does_not_keep_the_others_from_being_judged(two: Project) -> None:
    two.profile(num_loads=2, num_blocks=1).record()
    # Calls 1 to 3 are the warm-up and the passes of the first workload.
    refused = ["request", "vLLM refused the request: too long"]
    result = two.fake(speculative={"on": {"generate#4": refused}}).run("suites")
    assert result.outcomes == dict.fromkeys(names("code"), "passed") | dict.fromkeys(
        names("story"), "error"
    )
    assert "refused a request: vLLM refused the request: too long" in result.message(
        "story.jsonl::fast::identical[one]"
    )
    assert result.loads() == BOTH * 2
    assert (result.passes("code"), result.passes("story")) == ([*ABBA] * 2, [])
    assert runs(result)["code"]["num_loads"] == 2
