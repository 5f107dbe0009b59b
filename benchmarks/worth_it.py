"""How often an answer to the worth-it question is wrong, by simulation; seconds.

    .venv/bin/python benchmarks/worth_it.py

Only the times are made up: they go through `point_gain` and `break_even`, as measured ones do.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

if not __package__:  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pytest_specdec.break_even import break_even
from pytest_specdec.gains import point_gain
from pytest_specdec.measurement import EngineMeasurement, Measurement
from pytest_specdec.speedup import Speedup
from pytest_specdec.sweep import Point
from pytest_specdec.worth_it import PointGain

LOADS = (1, 2, 4, 8, 16, 32)
ENGINE = EngineMeasurement(
    num_passes=1, num_output_tokens=1, num_steps=1, tokens_per_step=1.0, ttft_ms=1.0, tpot_ms=1.0
)


@dataclass(frozen=True, slots=True)
class Noise:
    """Of one pass, on the log scale.

    Attributes:
        scatter: standard deviation.
        drift: how much slower each pass is than the one before, whichever engine's.
        autocorrelation: with the pass before (AR(1)).
    """

    name: str
    scatter: float
    drift: float = 0.0
    autocorrelation: float = 0.0


NOISES = (
    Noise("2%", 0.02),
    Noise("5%", 0.05),
    Noise("2%, each pass 1% slower than the last", 0.02, drift=0.01),
    Noise("2%, AR(1) of 0.6", 0.02, autocorrelation=0.6),
    Noise("5%, AR(1) of 0.6", 0.05, autocorrelation=0.6),
)


def log_ratios(log_gain: float, num_blocks: int, noise: Noise, made: random.Random) -> list[float]:
    """Of the pairs of passes in ABBA order."""
    speeds, before = [], made.gauss(0, 1)
    for number in range(4 * num_blocks):
        fresh = math.sqrt(1 - noise.autocorrelation**2) * made.gauss(0, 1)
        before = noise.autocorrelation * before + fresh
        speeds.append(noise.scatter * before - noise.drift * number)
    pairs = zip(speeds[::2], speeds[1::2], strict=True)
    return [
        log_gain + (second - first if number % 2 == 0 else first - second)
        for number, (first, second) in enumerate(pairs)
    ]


def judged(
    log_gain: float, num_blocks: int, noise: Noise, made: random.Random, load: int = 1
) -> PointGain:
    """One point of that true gain, from `num_blocks` ABBA blocks."""
    ratios = tuple(log_ratios(log_gain, num_blocks, noise, made))
    speedup = Speedup(
        loads=(ratios,),
        pairing="adjacent",
        baseline_tokens_per_step=1.0,
        speculative_tokens_per_step=1.0,
        baseline_step_ms=1.0,
        speculative_step_ms=1.0,
    )
    return point_gain(
        Measurement(
            workload="simulated",
            workload_digest="",
            concurrency=load,
            baseline=ENGINE,
            speculative=ENGINE,
            drafts=None,
            drafts_source=None,
            prompts=(),
            speedup=speedup,
            speedup_missing=None,
        ),
        workload="simulated",
        point=Point(in_flight=load),
        changes={},
        num_speculative_tokens=None,
        num_prompt_tokens=None,
        is_identical=True,
        min_gain=1.0,
    )


def answers(num_runs: int, made: random.Random) -> Iterator[str]:
    """How often each answer is given, and how often the interval has the truth in it."""
    yield "| passes scatter by | blocks | true gain | gains | undecided | loses | in the interval |"
    yield "|---|---|---|---|---|---|---|"
    for noise in NOISES:
        for num_blocks, gain in ((2, 1.0), (2, 1.1), (2, 1.2), (4, 1.1)):
            found = [judged(math.log(gain), num_blocks, noise, made) for _ in range(num_runs)]
            counts = Counter(each.answer for each in found)
            inside = sum((each.low or 0) <= gain <= (each.high or 0) for each in found)
            shares = (counts["gains"], counts["undecided"], counts["loses"], inside)
            told = " | ".join(f"{share / num_runs:.1%}" for share in shares)
            yield f"| {noise.name} | {num_blocks} | {gain:g} | {told} |"


def gates(num_runs: int, made: random.Random) -> Iterator[str]:
    """How often a gate passes that holds all these points to a gain, with two blocks each."""
    yield "| passes scatter by | true gains that must be | passes |"
    yield "|---|---|---|"
    cases = ((1.0,), (1.0,) * 4, (1.3, 1.3, 1.3, 1.0), (1.1,), (1.1,) * 4, (1.2,) * 4)
    for noise in NOISES[:2]:
        for gains in cases:
            passed = sum(
                all(judged(math.log(gain), 2, noise, made).answer == "gains" for gain in gains)
                for _ in range(num_runs)
            )
            told = ", ".join(f"{gain:g}" for gain in gains)
            yield f"| {noise.name} | {told} | {passed / num_runs:.1%} |"


CURVES: dict[str, Callable[[float], float]] = {
    "straight, even at 11": lambda x: 0.2 * (math.log2(11) - x),
    "straight, even at 8, a measured load": lambda x: 0.2 * (3 - x),
    "shallow, even at 11": lambda x: 0.05 * (math.log2(11) - x),
    "falls ever faster, even at 11": lambda x: 0.04 * (math.log2(11) ** 2 - x**2),
    "falls ever slower, even at 11": lambda x: math.log(2) * (1 - (x / math.log2(11)) ** 0.5),
}


def break_evens(num_runs: int, made: random.Random) -> Iterator[str]:
    """How often the true break-even is in its interval, with two blocks at each load."""
    yield "| log of gain against log2 of load | passes scatter by | in the interval | its width |"
    yield "|---|---|---|---|"
    for name, curve in CURVES.items():
        truth = 8.0 if "at 8" in name else 11.0
        for noise in NOISES[:2]:
            inside, widths = 0, []
            for _ in range(num_runs):
                points = [judged(curve(math.log2(load)), 2, noise, made, load) for load in LOADS]
                found = break_even(points, min_gain=1.0)
                assert found is not None
                low, high = found.low or 0.0, found.high or math.inf
                inside += low <= truth <= high
                widths.append(high / low if low else math.inf)
            middle = sorted(widths)[num_runs // 2]
            width = "open" if math.isinf(middle) else f"a factor of {middle:.2g}"
            yield f"| {name} | {noise.name} | {inside / num_runs:.1%} | {width} |"


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=2000, help="for each line")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    made = random.Random(asked.seed)
    for table in (answers, gates, break_evens):
        print(*table(asked.runs, made), "", sep="\n")


if __name__ == "__main__":
    main()
