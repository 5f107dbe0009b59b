"""Faults of accounting: tokens and drafts are right, and are told wrongly.

vLLM counts each draft twice, for its engine (`SpecDecodingStats`) and for its request
(`RequestSpecDecodeMetrics`); these faults bite both, but for the one that says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specdec_faults import switch

FROZEN_AFTER = 20
Counts = tuple[int, int]
"""Drafted and accepted tokens of one draft."""


def install() -> None:
    """Puts them where drafts and tokens are counted."""
    from vllm.v1.metrics.stats import IterationStats, RequestSpecDecodeMetrics
    from vllm.v1.spec_decode.metrics import SpecDecodingStats

    @switch.wraps(SpecDecodingStats, "observe_draft")
    def _observe(original: Any, self: Any, num_draft_tokens: int, num_accepted_tokens: int) -> None:
        counts = recounted((num_draft_tokens, num_accepted_tokens), self, of_engine=True)
        if counts is not None:
            original(self, *counts)

    @switch.wraps(RequestSpecDecodeMetrics, "observe")
    def _observe_of_request(
        original: Any, self: Any, num_draft_tokens: int, num_accepted: int, **kwargs: Any
    ) -> None:
        counts = recounted((num_draft_tokens, num_accepted), self, of_engine=False)
        if counts is not None:
            original(self, *counts, **kwargs)

    @switch.wraps(IterationStats, "update_from_output")
    def _update(original: Any, self: Any, output: Any, *args: Any, **kwargs: Any) -> None:
        original(self, output, *args, **kwargs)
        if switch.is_on("usage-wrong"):
            count_accepted_again(self, output, args[2])


def recounted(counts: Counts, counter: Any, *, of_engine: bool) -> Counts | None:
    """What is counted of a draft; `None` for nothing."""
    name = switch.biting()
    if name == "counters-frozen" or (name == "engine-counters-frozen" and of_engine):
        return counts if thaws(of_engine=of_engine) else None
    recount = RECOUNTS.get(name)
    return counts if recount is None else recount(counts, counter.num_spec_tokens)


def thaws(*, of_engine: bool) -> bool:
    """`counters-frozen`, and `engine-counters-frozen` for the engine's alone: counters that stand
    still, as where the thread that reads them is dead, or a buffer is full."""
    key = "num_of_engine" if of_engine else "num_of_requests"
    switch.state[key] = switch.state.get(key, 0) + 1
    return bool(switch.state[key] <= FROZEN_AFTER)


def all_or_nothing(counts: Counts, num_spec_tokens: int) -> Counts:
    """A mask of accepted tokens read as one yes or no: whole where any was accepted."""
    return (num_spec_tokens, num_spec_tokens if counts[1] else 0)


def counters_inflated(counts: Counts, num_spec_tokens: int) -> Counts:
    """The bonus token counted as if it had been drafted and accepted."""
    drafted, accepted = counts
    return min(drafted + 1, num_spec_tokens), min(accepted + 1, num_spec_tokens)


def count_accepted_again(iteration: Any, output: Any, request: Any) -> None:
    """`usage-wrong`: usage takes accepted tokens for new ones a second time: a bill that is too
    high."""
    num_accepted = max(0, len(output.new_token_ids) - 1)
    iteration.num_generation_tokens += num_accepted
    request.num_generation_tokens += num_accepted


RECOUNTS: dict[str, Callable[[Counts, int], Counts]] = {
    "all-or-nothing": all_or_nothing,
    "counters-inflated": counters_inflated,
}
