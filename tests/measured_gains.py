"""Answers to whether speculation is worth it, for tests of how they are told; every part settable
by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_specdec.sweep import Point
from pytest_specdec.worth_it import (
    BreakEven,
    Cost,
    EngineCost,
    PointGain,
    WorkloadAnswer,
    WorthIt,
)

EMPTY = WorthIt(points=(), answers=(), cost=None)


def gained(workload: str = "sql", **facts: Any) -> PointGain:
    """By default it gains, at one load, with every figure that a plain workload has."""
    point = {
        name: facts.pop(name)
        for name in ("in_flight", "context_tokens", "temperature")
        if name in facts
    }
    return PointGain(
        **{
            "answer": "gains",
            "reason": "above 1",
            "num_speculative_tokens": 3,
            "acceptance_rate": 0.625,
            "mean_acceptance_length": 2.875,
            "tokens_per_step_ratio": 2.5,
            "step_cost_ratio": 1.25,
            "gain": 2.0,
            "low": 1.8,
            "high": 2.2,
            "ttft_ratio": 1.1,
            "tpot_ratio": 0.5,
            **facts,
        },
        workload=workload,
        point=Point(**{"in_flight": 1, **point}),
    )


def answered(workload: str = "sql", **facts: Any) -> WorkloadAnswer:
    return WorkloadAnswer(
        **{"answer": "worth it", "text": "worth it", "reason": "it gains", **facts},
        workload=workload,
    )


def cost(**facts: Any) -> Cost:
    """The speculative engine has a fifth fewer blocks, and half a GiB more memory."""
    return Cost(
        baseline=EngineCost(
            load_s=8.0,
            weights_bytes=2**30,
            kv_cache_blocks=1500,
            kv_cache_tokens=24000,
            peak_memory_bytes=3 * 2**30,
        ),
        speculative=EngineCost(
            load_s=12.5,
            weights_bytes=2**30 + 100 * 2**20,
            kv_cache_blocks=1200,
            kv_cache_tokens=19200,
            peak_memory_bytes=3 * 2**30 + 2**29,
        ),
        **{"draft_weights_bytes": 100 * 2**20, **facts},
    )


def sweep() -> WorthIt:
    """Every axis, several ways to speculate, and every answer."""
    json_points = [
        gained(
            "json_generation",
            in_flight=in_flight,
            context_tokens=context,
            gain=(gain := 2.1 * in_flight**-0.3 * (context / 128) ** 0.08),
            low=0.94 * gain,
            high=1.07 * gain,
            answer="gains" if 0.94 * gain > 1 else "loses" if 1.07 * gain < 1 else "undecided",
            reason="its interval says so",
            ttft_ratio=1.05 + 0.02 * in_flight,
            tpot_ratio=1 / gain,
        )
        for context in (128, 512, 2048)
        for in_flight in (1, 2, 4, 8, 16)
    ]
    story_points = [
        gained(
            "story",
            temperature=temperature,
            acceptance_rate=0.42 - 0.2 * temperature,
            gain=1.1 - 0.2 * temperature,
            low=1.02 - 0.2 * temperature,
            high=1.18 - 0.2 * temperature,
            answer="gains" if temperature < 0.1 else "undecided",
        )
        for temperature in (0.0, 0.4, 0.7, 1.0)
    ]
    variants = [
        gained(
            "structured_extraction",
            in_flight=2,
            changes=changes,
            num_speculative_tokens=num_tokens,
            gain=gain,
            low=0.95 * gain,
            high=1.05 * gain,
            expected=1.1 * gain,
            expected_verified=0.98 * gain,
        )
        for num_tokens, gain, changes in (
            (3, 1.6, {}),
            (1, 1.3, {"num_speculative_tokens": 1}),
            (2, 1.5, {"num_speculative_tokens": 2}),
            (5, 1.7, {"num_speculative_tokens": 5}),
            (8, 1.4, {"num_speculative_tokens": 8}),
            (4, 1.2, {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}),
        )
    ]
    others = [
        gained("sql", answer="not identical", reason="`list-all` differs from token 7"),
        gained(
            "tool_calls",
            answer="unmeasured",
            reason="no pass ended",
            **dict.fromkeys(("gain", "low", "high", "ttft_ratio", "tpot_ratio"), None),
        ),
    ]
    return WorthIt(
        points=[*json_points, *story_points, *variants, *others],
        answers=[
            answered(
                "json_generation",
                answer="only for",
                text="only for up to 8 in flight",
                reason="a step of 16 requests costs 2.4 times as much",
                break_even={
                    128: BreakEven(text="about 11 (8 to 16)", value=11.3, low=8, high=16),
                    512: BreakEven(text="about 14 (8 to over 16)", value=14.0, low=8),
                    2048: BreakEven(text="over 16", low=16),
                },
            ),
            answered(
                "story", answer="not worth it", text="not worth it", reason="few are accepted"
            ),
            answered("structured_extraction", best={"num_speculative_tokens": 5}),
            answered("sql", answer="undecided", text="undecided", reason="answers differ"),
        ],
        cost=cost(),
        unmet=("`json_generation` at 16 in flight: 0.95 (0.89 to 1.02) is not above 1",),
    )


def with_nothing() -> WorthIt:
    """Nothing could be had: of no point, of no engine."""
    bare: Mapping[str, Any] = {"answer": "unmeasured", "reason": ""}
    return WorthIt(
        points=[
            PointGain(workload="sql", point=Point(in_flight=1), **bare),
            PointGain(
                workload="sql", point=Point(in_flight=2), changes={"method": "ngram"}, **bare
            ),
        ],
        answers=[answered(answer="undecided", text="undecided", reason="")],
        cost=Cost(baseline=EngineCost(), speculative=EngineCost()),
    )


def all_of(text: str, loads: Sequence[int] = (1, 2)) -> WorthIt:
    """Every word that people wrote is this text."""
    points = [
        gained(
            text,
            in_flight=in_flight,
            context_tokens=64,
            reason=text,
            answer=answer,
            changes=changes,
            expected=1.0,
        )
        for in_flight in loads
        for answer, changes in (("not identical", {}), ("gains", {text: text}))
    ]
    return WorthIt(
        points=points,
        answers=[
            answered(
                text,
                text=text,
                reason=text,
                break_even={64: BreakEven(text=text, value=1.5)},
                best={text: text},
            )
        ],
        cost=cost(),
        unmet=(text,),
    )
