"""Passes stop at the look that decides; numbers that are to be stored get all of them."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.engines.loads import ABBA
from tests.fake_engine.project import Project

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
NOISE = [1.0, 0.6, 1.6, 0.7, 1.5]


@pytest.fixture
def recorded(project: Project) -> Project:
    """Stored baselines; looks after 3, 6 and 8 blocks."""
    return project.workload("code", EXACT).workload("story", "one").record()


def blocks(num: int) -> list[str]:
    return [*ABBA] * num


@pytest.mark.parametrize(
    ("settings", "num_blocks", "word"),
    [
        pytest.param({}, 3, "passed", id="steady, as stored"),
        pytest.param({"speculative": {"step_ms": 20.0}}, 3, "failed", id="steady, fallen"),
        pytest.param({"accepted": 2}, 3, "failed", id="steady, less accepted"),
        # The first call is the warm-up.
        pytest.param(
            {"speculative": {"wall_factors": [1.0, *[0.95, 1.05] * 3, *[1.0] * 10]}},
            6,
            "passed",
            id="noisy at first",
        ),
        pytest.param({"speculative": {"wall_factors": NOISE}}, 8, "skipped", id="noisy"),
    ],
)
def test_passes_stop_at_the_first_look_that_decides(
    recorded: Project, settings: dict[str, Any], num_blocks: int, word: str
) -> None:
    result = recorded.fake(**settings).run("suites", "-k", "code")
    assert result.passes("code") == blocks(num_blocks)
    assert result.outcomes["code.jsonl::fast::speedup"] == word
    (profile,) = result.report["profiles"]
    (workload,) = profile["workloads"]
    assert len(workload["runs"]["conditions"]) == num_blocks


def test_what_is_to_be_stored_gets_all_passes(recorded: Project) -> None:
    result = recorded.run("suites", "--update-baselines")
    assert result.passes("code") == result.passes("story") == blocks(8)
    recorded.edit_stored(lambda data: data["workloads"].pop("story"))
    result = recorded.run("suites", "--update-baselines=new")
    assert (result.passes("code"), result.passes("story")) == (blocks(3), blocks(8))
    (load,) = recorded.stored()["workloads"]["story"]["speedup"]["loads"]
    assert len(load["log_ratios"]) == 16


def test_without_anything_to_compare_with_one_block_is_enough(project: Project) -> None:
    result = project.workload("code", EXACT).run("suites")
    assert result.passes("code") == blocks(1)
    assert result.outcomes["code.jsonl::fast::speedup"] == "skipped"


def test_numbers_of_another_workload_are_nothing_to_compare_with(recorded: Project) -> None:
    result = recorded.workload("code", EXACT, "two").run("suites", "-k", "code")
    assert "incomparable: " in result.message("speedup")
    assert result.passes("code") == blocks(1)


def test_a_minimum_is_something_to_compare_with(project: Project) -> None:
    project.profile(tolerances={"min_speedup": 4.0}, num_blocks=6, num_looks=2)
    result = project.workload("code", EXACT).run("suites")
    assert result.passes("code") == blocks(3)
    assert result.outcomes["code.jsonl::fast::speedup"] == "failed"


def test_looks_are_the_profile_s(recorded: Project) -> None:
    recorded.profile(num_blocks=4, num_looks=1)
    assert recorded.run("suites", "-k", "code").passes("code") == blocks(4)
    recorded.profile(num_blocks=4, num_looks=2)
    assert recorded.run("suites", "-k", "code").passes("code") == blocks(2)


def test_one_engine_after_the_other_makes_all_passes(recorded: Project) -> None:
    recorded.profile(layout="sequential", num_blocks=3)
    result = recorded.run("suites", "-k", "code")
    assert result.passes("code") == ["baseline"] * 6 + ["speculative"] * 6
    assert result.not_passed == {}


def test_passes_that_cannot_stop_early_are_all_judged(recorded: Project) -> None:
    # The first three blocks would have decided, and the others be left out of the interval.
    factors = [1.0, *[0.60, 0.62] * 3, *[0.98, 1.0] * 5]
    recorded.profile(layout="sequential").fake(speculative={"wall_factors": factors})
    (workload,) = recorded.run("suites", "-k", "code").report["profiles"][0]["workloads"]
    verdict = workload["verdicts"]["speedup"]
    assert verdict["low"] < verdict["now"] < verdict["high"]
