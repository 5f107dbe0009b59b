"""What disturbed, and several stretches told as one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_specdec.conditions import Conditions, Limits, disturbances, together

QUIET = Conditions(
    device="gpu",
    wall_s=10.0,
    other_cpu_share=0.125,
    load_average=1.5,
    num_samples=20,
    throttle_reasons=(),
    other_gpu_processes=(),
    sm_clock_mhz=(1965, 1980),
)
UNKNOWN = Conditions(device="gpu", wall_s=10.0)


def test_no_stretch_has_no_conditions() -> None:
    assert together([]) is None


@pytest.mark.parametrize("alone", [QUIET, UNKNOWN])
def test_one_stretch_is_itself(alone: Conditions) -> None:
    assert together([alone]) == alone


@pytest.mark.parametrize(
    ("name", "parts", "whole"),
    [
        ("wall_s", [10.0, 2.5], 12.5),
        ("load_average", [1.5, 7.0, None], 7.0),
        ("load_average", [None, None], None),
        ("num_samples", [20, 0, 3], 23),
        ("throttle_reasons", [("b", "a"), ("c", "b"), ()], ("a", "b", "c")),
        ("throttle_reasons", [None, ()], ()),
        ("throttle_reasons", [None, None], None),
        ("other_gpu_processes", [(900,), (901, 900)], (900, 901)),
        ("other_gpu_processes", [None, (900,)], (900,)),
        ("other_gpu_processes", [None, None], None),
        # Of the stretch in which it differed most, though another saw a higher one.
        ("sm_clock_mhz", [(1900, 1980), (1000, 1500), (1965, 2000)], (1000, 1500)),
        ("sm_clock_mhz", [None, (1900, 1980)], (1900, 1980)),
        ("sm_clock_mhz", [None, None], None),
    ],
)
def test_each_fact_of_all_stretches(name: str, parts: list[Any], whole: Any) -> None:
    num = len(parts)
    changed = {"wall_s": 10.0 * num, "num_samples": 20 * num, name: whole}
    found = together([replace(QUIET, **{name: part}) for part in parts])
    assert found == replace(QUIET, **changed)


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([(0.5, 10.0), (0.0, 30.0)], 0.125),
        ([(0.5, 10.0), (0.5, 1.0)], 0.5),
        ([(None, 10.0), (0.25, 30.0)], 0.25),
        ([(None, 10.0), (None, 30.0)], None),
        ([(0.5, 0.0), (0.25, 0.0)], None),
    ],
)
def test_shares_of_the_cpu_weigh_by_length(
    parts: list[tuple[float | None, float]], whole: float | None
) -> None:
    found = together(
        [replace(QUIET, other_cpu_share=share, wall_s=wall_s) for share, wall_s in parts]
    )
    assert found is not None
    assert found.other_cpu_share == whole


def test_what_disturbs_a_part_disturbs_the_whole_by_its_length_or_at_all() -> None:
    loaded = replace(QUIET, device="cpu", other_cpu_share=0.9, wall_s=1.0)
    long = replace(loaded, other_cpu_share=0.0, wall_s=9.0)
    shared = replace(QUIET, other_gpu_processes=(900,), wall_s=0.1)
    for stretches, told in (
        ([loaded, long], ()),
        ([loaded, loaded, loaded, long], ()),
        ([loaded, replace(long, wall_s=1.0)], ("others used 45% of the CPU (limit 25%)",)),
        ([QUIET, shared, QUIET], ("other processes on the GPU: 1",)),
    ):
        found = together(stretches)
        assert found is not None
        assert disturbances(found, Limits()) == told


@pytest.mark.parametrize("facts", [QUIET, UNKNOWN, replace(QUIET, throttle_reasons=("a", "b"))])
def test_json_both_ways(facts: Conditions) -> None:
    assert Conditions.from_json(json.loads(json.dumps(facts.to_json()))) == facts


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, ()),
        ({"device": "cpu"}, ()),
        (
            {"device": "cpu", "other_cpu_share": 0.38},
            ("others used 38% of the CPU (limit 25%)",),
        ),
        (
            {"device": "cpu", "other_cpu_share": 0.2512},
            ("others used 25.1% of the CPU (limit 25%)",),
        ),
        ({"device": "cpu", "other_cpu_share": 0.25}, ()),
        ({"device": "cpu", "other_cpu_share": None}, ()),
        # A GPU's host has cores to spare.
        ({"other_cpu_share": 0.38}, ()),
        ({"throttle_reasons": ("GPU idle", "SW power cap", "applications clocks setting")}, ()),
        ({"throttle_reasons": ("display clock setting", "reason 0x200", "sync boost")}, ()),
        (
            {"throttle_reasons": ("SW power cap", "SW thermal slowdown")},
            ("the GPU throttled: SW thermal slowdown",),
        ),
        (
            {"throttle_reasons": ("HW power brake slowdown", "HW slowdown")},
            ("the GPU throttled: HW power brake slowdown, HW slowdown",),
        ),
        (
            {"throttle_reasons": ("HW thermal slowdown",)},
            ("the GPU throttled: HW thermal slowdown",),
        ),
        ({"other_gpu_processes": (900, 901)}, ("other processes on the GPU: 2",)),
        (
            {"sm_clock_mhz": (1410, 1980)},
            ("SM clock between 1410 and 1980 MHz (spread limit 10%)",),
        ),
        ({"sm_clock_mhz": (1800, 2000)}, ()),
        ({"sm_clock_mhz": (0, 0)}, ()),
        (
            {"other_gpu_processes": (900,), "sm_clock_mhz": (1000, 2000)},
            (
                "other processes on the GPU: 1",
                "SM clock between 1000 and 2000 MHz (spread limit 10%)",
            ),
        ),
    ],
)
def test_what_disturbed(changes: dict[str, Any], told: tuple[str, ...]) -> None:
    assert disturbances(replace(QUIET, **changes), Limits()) == told


def test_what_is_not_known_disturbed_nothing() -> None:
    assert disturbances(UNKNOWN, Limits()) == ()
    assert disturbances(replace(UNKNOWN, device="cpu"), Limits()) == ()


def test_limits_are_the_users() -> None:
    loaded = replace(QUIET, device="cpu", other_cpu_share=0.38, sm_clock_mhz=(1410, 1980))
    assert disturbances(loaded, Limits(max_other_cpu_share=0.4, max_clock_spread=0.3)) == ()
    assert disturbances(loaded, Limits(max_other_cpu_share=0.015, max_clock_spread=0.005)) == (
        "others used 38% of the CPU (limit 1.5%)",
        "SM clock between 1410 and 1980 MHz (spread limit 0.5%)",
    )
