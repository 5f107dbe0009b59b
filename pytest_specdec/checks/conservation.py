"""Whether counts add up: drafts, steps and tokens of requests, passes and engines.

A step that gives a request tokens gives it one more than it accepts. What comes after the answer's
end is counted as accepted all the same and then trimmed, and only the last step can reach past the
end; the token that ends the answer is kept, so that every such step is in `step_tokens`. For one
request, with `k` for `num_speculative_tokens`:

    output tokens + trimmed = steps + accepted        0 <= trimmed <= k + 1 - last step's tokens

vLLM counts generated tokens when all is trimmed but for what follows a stop string. So that count
is larger than the answer only where a stop string ended it, and by no more than the same bound.
Counts are compared where both are known, and nothing of an aborted request, which may have lost its
last step. Floor 2: imports from the floors below and its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_specdec.checks.finding import Finding, at_most
from pytest_specdec.generation import ROLES, Generation, Pass, Role, RunPair
from pytest_specdec.workload import Workload

COMPLETE = frozenset({"stop", "length"})


def check_counts(
    workload: Workload,
    runs: RunPair,
    *,
    num_speculative_tokens: int | None,
    num_baseline_tokens: int | None = 0,
) -> Finding | None:
    """Every law that the counts of any pass break.

    Args:
        num_speculative_tokens, num_baseline_tokens: `k` of the speculative and of the baseline
            engine; `None` where it is not known.
    """
    most: Mapping[Role, int | None] = {
        "baseline": num_baseline_tokens,
        "speculative": num_speculative_tokens,
    }
    several = {prompt.id for prompt in workload.asked if prompt.request.get("n", 1) > 1}
    facts = [
        f"{role} engine, pass {number}{where}: {law}"
        for role in ROLES
        for number, walk in enumerate(runs.run(role).passes, start=1)
        for where, law in _broken(walk, several, k=most[role])
    ]
    if not facts:
        return None
    return Finding(
        kind="miscounted",
        prompt_id=None,
        facts=at_most(facts),
        hint="trust no acceptance or speedup of this run; look at how the engine counts",
    )


def _broken(walk: Pass, several: set[str], *, k: int | None) -> Iterator[tuple[str, str]]:
    """Where and which, for one pass.

    Args:
        several: prompts that ask for several answers, of which only one's tokens are known.
        k: draft tokens in a step, at most; `None` where that is not known.
    """
    for each in walk.generations:
        where = f", `{each.prompt_id}`"
        laws = each.drafts.broken_laws() if each.drafts is not None else ()
        yield from ((where, law) for law in laws)
        if each.prompt_id not in several:
            yield from ((where, law) for law in _of_request(each, k))
    laws = walk.drafts.broken_laws() if walk.drafts is not None else ()
    yield from (("", law) for law in laws)
    single = [each for each in walk.generations if each.prompt_id not in several]
    is_whole = len(single) == len(walk.generations)
    yield from (("", law) for law in _of_engine(walk, single))
    if is_whole and all(each.finish_reason in COMPLETE for each in single):
        yield from (("", law) for law in _sums(walk, k))


def _of_request(answer: Generation, k: int | None) -> Iterator[str]:
    num_tokens, num_steps = len(answer.token_ids), answer.num_steps
    if sum(answer.step_tokens) != num_tokens:
        yield f"its steps gave {sum(answer.step_tokens)} tokens, but it has {num_tokens}"
    most = max(answer.step_tokens, default=0)
    if k is not None and most > k + 1:
        yield f"a step gave {most} tokens, more than {k} draft tokens and one"
    if answer.finish_reason not in COMPLETE:
        return
    if answer.drafts is not None:
        accepted = answer.drafts.num_accepted_tokens
        trimmed = num_steps + accepted - num_tokens
        told = f"{num_tokens} tokens in {num_steps} steps with {accepted} accepted"
        if trimmed < 0:
            yield f"{told}: {-trimmed} came from nowhere"
        elif k is not None and num_steps and trimmed > max(0, k + 1 - answer.step_tokens[-1]):
            yield f"{told}: {trimmed} are missing, more than the last step can have trimmed"
    yield from _usage(answer, k)


def _usage(answer: Generation, k: int | None) -> Iterator[str]:
    """The engine counts tokens before a stop string trims them."""
    if answer.usage is None:
        return
    counted, num_tokens = answer.usage.num_prompt_tokens, len(answer.prompt_token_ids)
    if counted != num_tokens:
        yield f"{counted} prompt tokens counted, but the prompt has {num_tokens}"
    counted, num_tokens = answer.usage.num_generation_tokens, len(answer.token_ids)
    if not num_tokens <= counted <= num_tokens + _slack(answer, k):
        yield f"{counted} generated tokens counted, but the answer has {num_tokens}"


def _slack(answer: Generation, k: int | None) -> float:
    """Tokens that a stop string may have trimmed."""
    if not isinstance(answer.stop_reason, str):
        return 0
    return float("inf") if k is None else max(0, k + 1 - (answer.step_tokens or (1,))[-1])


def _of_engine(walk: Pass, single: list[Generation]) -> Iterator[str]:
    """An engine that counts too little: every token after a step's first was accepted."""
    extra = sum(len(each.token_ids) - each.num_steps for each in single)
    if walk.drafts is not None and extra > walk.drafts.num_accepted_tokens:
        accepted = walk.drafts.num_accepted_tokens
        yield f"steps gave {extra} tokens beyond their first, but the engine accepted {accepted}"


def _sums(walk: Pass, k: int | None) -> Iterator[str]:
    """The engine's counts against those of its requests."""
    drafts, source = walk.counted
    if drafts is not None and source == "request" and walk.drafts is not None:
        for name in ("num_drafts", "num_draft_tokens", "num_accepted_tokens"):
            own, engine = getattr(drafts, name), getattr(walk.drafts, name)
            if own != engine:
                yield f"`{name}` of the requests: {own}, of the engine: {engine}"
    if walk.usage is None:
        return
    num_prompt_tokens = sum(len(each.prompt_token_ids) for each in walk.generations)
    if walk.usage.num_prompt_tokens != num_prompt_tokens:
        yield f"engine: {walk.usage.num_prompt_tokens} prompt tokens, requests: {num_prompt_tokens}"
    usages = [each.usage for each in walk.generations]
    known = [each.num_generation_tokens for each in usages if each is not None]
    least = sum(known) if len(known) == len(usages) else walk.num_output_tokens
    slack = 0 if len(known) == len(usages) else sum(_slack(each, k) for each in walk.generations)
    if not least <= walk.usage.num_generation_tokens <= least + slack:
        counted = walk.usage.num_generation_tokens
        yield f"engine: {counted} generated tokens, requests: {least}"
