"""The circumstances of `again`: what each is called in a sentence, and whether it came about.

Floor 2: imports from the floors below and its own.
"""

from __future__ import annotations

from pytest_specdec.checks.finding import Finding, at_most
from pytest_specdec.generation import ROLES, Pass, Retake, RunPair
from pytest_specdec.workload import Workload

WORDS = {
    "warm-prefix-cache": "with a warm prefix cache",
    "not-streamed": "with whole answers, not streamed",
    "under-preemption": "under preemption",
    "after-long-request": "after a long request",
    "after-aborts": "after a burst of aborts",
    "after-sleep": "after sleep",
}


def in_words(circumstance: str) -> str:
    """Such as `with 8 in flight`: for a sentence about the answers."""
    return WORDS.get(circumstance) or f"with {circumstance.replace('-', ' ')}"


def not_brought_about(workload: Workload, runs: RunPair, retake: Retake) -> Finding | None:
    """The finding of a retake that tests nothing: there is none, it is not whole, or nothing was
    different. `None` where the engine does not count what would show a difference."""
    hint: str | None = None
    if retake.baseline is None or retake.speculative is None:
        fact = f"not asked again {in_words(retake.circumstance)}: {retake.missing}"
    elif (unanswered := _unanswered(workload, retake.baseline, retake.speculative)) is not None:
        fact = f"{in_words(retake.circumstance)}: {unanswered}"
    elif retake.circumstance == "warm-prefix-cache" and _is_cold(runs, retake.speculative):
        fact = f"{in_words(retake.circumstance)}: no more prompt tokens cached than without"
        hint = (
            "check `enable_prefix_caching`, and take prompts longer than a block of the KV cache: "
            "only whole blocks are cached"
        )
    elif retake.circumstance == "under-preemption" and _is_unpreempted(retake.speculative):
        fact = f"{in_words(retake.circumstance)}: preemptions counted: 0"
        hint = (
            "lower `num_gpu_blocks_override`, or ask for more and longer answers at once, until "
            "they no longer fit the KV cache"
        )
    else:
        return None
    return Finding(kind="not brought about", prompt_id=None, facts=(fact,), hint=hint)


def _unanswered(workload: Workload, *passes: Pass) -> str | None:
    for role, walk in zip(ROLES, passes, strict=True):
        answered = {each.prompt_id for each in walk.generations}
        missing = [f"`{prompt.id}`" for prompt in workload.asked if prompt.id not in answered]
        if missing:
            return f"not answered by the {role} engine: {', '.join(at_most(missing))}"
    return None


def _is_cold(runs: RunPair, again: Pass) -> bool:
    """Prompts may share a beginning, so that some of it is cached in any pass."""
    cached = _num_cached_tokens(again)
    return cached is not None and cached <= (_num_cached_tokens(runs.speculative.passes[0]) or 0)


def _is_unpreempted(again: Pass) -> bool:
    return again.usage is not None and again.usage.num_preemptions == 0


def _num_cached_tokens(walk: Pass) -> int | None:
    known = [each.usage.num_cached_tokens for each in walk.generations if each.usage is not None]
    if known:
        return sum(known)
    return None if walk.usage is None else walk.usage.num_cached_tokens
