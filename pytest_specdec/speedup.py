"""Speedup: what the passes of both engines say about time, and what the ratio is made of.

It compares equal work only: passes of unequal numbers of tokens have no speedup, and the reason is
told instead. Floor 2: imports no judgement and no engine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean, geometric_mean
from typing import Literal

from pytest_specdec.generation import Pass, Role, Run, RunPair

Pairing = Literal["adjacent", "sequential"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Speedup:
    """Speculative over baseline output tokens per second, and what it is made of.

    `value == tokens_per_step_ratio / step_cost_ratio`, by construction. The four figures are
    geometric means over passes; a step is counted once for each request it served, so with several
    requests in flight `step_ms` is one request's share.

    Attributes:
        loads: for each load the log ratios of its pairs of passes.
        pairing: `adjacent` passes of ABBA are paired as (A, B) and (B, A), so a linear drift of the
            machine cancels in the mean; where one engine made all its passes first, `sequential`,
            the n-th passes are paired and a drift stays in.
    """

    loads: tuple[tuple[float, ...], ...]
    pairing: Pairing
    baseline_tokens_per_step: float
    speculative_tokens_per_step: float
    baseline_step_ms: float
    speculative_step_ms: float

    @property
    def log_ratios(self) -> tuple[float, ...]:
        """Of all loads, one after the other."""
        return tuple(chain.from_iterable(self.loads))

    @property
    def value(self) -> float:
        return math.exp(fmean(self.log_ratios))

    @property
    def tokens_per_step_ratio(self) -> float:
        return self.speculative_tokens_per_step / self.baseline_tokens_per_step

    @property
    def step_cost_ratio(self) -> float:
        return self.speculative_step_ms / self.baseline_step_ms


def why_no_speedup(runs: RunPair) -> str | None:
    """The first reason why these passes have no speedup, or `None` when they have one."""
    counted = f"{len(runs.baseline.passes)} + {len(runs.speculative.passes)}"
    named = f"{runs.order.count('baseline')} + {runs.order.count('speculative')}"
    if counted != named:
        return f"the order names {named} passes of the two engines, but {counted} were taken"
    if _pairing(runs) is None:
        return f"the order does not pair the engines: {', '.join(runs.order)}"
    passes = (*runs.baseline.passes, *runs.speculative.passes)
    if any(not each.num_output_tokens or not each.num_steps or each.wall_s <= 0 for each in passes):
        return "a pass gave no tokens, no steps or no time"
    if len({each.num_output_tokens for each in passes}) > 1:
        return (
            f"the passes differ in output tokens (baseline {_sizes(runs.baseline)}, "
            f"speculative {_sizes(runs.speculative)}), and unequal work has no speedup"
        )
    return None


def speedup_of(runs: RunPair) -> Speedup:
    """The n-th pair holds the n-th pass of each engine, whichever of them went first.

    Call it only where `why_no_speedup` finds no reason.
    """
    baseline, speculative = runs.baseline.passes, runs.speculative.passes
    log_ratios = tuple(
        math.log(new.output_tokens_per_s / old.output_tokens_per_s)
        for old, new in zip(baseline, speculative, strict=True)
    )
    return Speedup(
        loads=tuple(
            log_ratios[start : start + runs.passes_per_load]
            for start in range(0, len(log_ratios), runs.passes_per_load)
        ),
        pairing=_pairing(runs) or "adjacent",
        baseline_tokens_per_step=geometric_mean(_tokens_per_step(each) for each in baseline),
        speculative_tokens_per_step=geometric_mean(_tokens_per_step(each) for each in speculative),
        baseline_step_ms=geometric_mean(_step_ms(each) for each in baseline),
        speculative_step_ms=geometric_mean(_step_ms(each) for each in speculative),
    )


def _sizes(run: Run) -> str:
    return " or ".join(
        str(size) for size in sorted({each.num_output_tokens for each in run.passes})
    )


def _pairing(runs: RunPair) -> Pairing | None:
    """The same in every load, or none."""
    size, rest = divmod(len(runs.order), runs.num_loads)
    loads = {_pairing_of(runs.order[at : at + size]) for at in range(0, len(runs.order), size or 1)}
    return loads.pop() if not rest and len(loads) == 1 else None


def _pairing_of(order: Sequence[Role]) -> Pairing | None:
    half, rest = divmod(len(order), 2)
    if rest:
        return None
    if all(first != second for first, second in zip(order[::2], order[1::2], strict=True)):
        return "adjacent"
    is_sequential = len(set(order[:half])) == len(set(order[half:])) == 1
    return "sequential" if is_sequential else None


def _tokens_per_step(walk: Pass) -> float:
    return walk.num_output_tokens / walk.num_steps


def _step_ms(walk: Pass) -> float:
    return 1000 * walk.wall_s / walk.num_steps
