from __future__ import annotations

import math

import pytest

from benchmarks.power import (
    CHANGES,
    SCENARIOS,
    acceptance,
    kept_chance,
    passes,
    profile_of,
    session,
)

NAMED = {scenario.name: scenario for scenario in SCENARIOS}
CHANGED = {change.name: change for change in CHANGES}


@pytest.mark.parametrize("name", [each.name for each in SCENARIOS if each.fall == 0])
def test_nothing_changed_fails_nothing(name: str) -> None:
    made = [session(NAMED[name], seed) for seed in range(2)]
    assert not any("failed" in each.kinds for each in made)
    assert all(each.num_passes <= each.most for each in made)


def test_a_fall_is_found_and_steady_passes_stop_early() -> None:
    slower = session(NAMED["10% slower"], 1)
    assert slower.kinds.count("failed") >= 7
    assert all(slower.point)
    steady = session(NAMED["nothing changed"], 1)
    assert steady.num_passes < 0.6 * steady.most


def test_a_session_can_be_made_again() -> None:
    assert session(NAMED["10% slower"], 3) == session(NAMED["10% slower"], 3)


def test_drift_slows_both_engines_alike() -> None:
    import random

    scenario = NAMED["nothing changed, 6% monotone drift"]
    taken = list(passes(scenario, profile_of(scenario), random.Random(1), speedup=2.0))
    for role in ("baseline", "speculative"):
        times = [math.log(walk.wall_s) for whose, walk in taken if whose == role]
        half = len(times) // 2
        assert sum(times[half:]) > sum(times[:half])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nothing changed, answers as stored", "passed"),
        ("5% lower, answers as stored", "failed"),
        ("5% lower, answers part half way", "failed"),
    ],
)
def test_acceptance(name: str, kind: str) -> None:
    verdict, _ = acceptance(CHANGED[name], 1)
    assert verdict.kind == kind


def test_a_fall_of_the_rate_is_made_of_chances() -> None:
    assert kept_chance(0.0) == pytest.approx(1.0)
    assert 0.95 < kept_chance(0.05) < 1.0
    assert kept_chance(0.10) < kept_chance(0.05)
