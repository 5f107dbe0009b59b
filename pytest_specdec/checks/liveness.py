"""Whether a workload exercised speculation at all: without that, "identical" means nothing.

Floor 2: imports from the floors below and its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pytest_specdec.checks.effect import without_effect
from pytest_specdec.checks.finding import Finding, at_most
from pytest_specdec.checks.validity import checks_for
from pytest_specdec.counters import DraftCounters
from pytest_specdec.generation import Generation, RunPair
from pytest_specdec.workload import Prompt, Workload

BROKEN_OFF = frozenset({"error", "abort"})
MIN_MEDIAN_TOKENS = 4
MIN_TOKENS = 16
"""Of all answers together, where each is one of a few choices and short by nature."""


def check_exercised(
    workload: Workload,
    runs: RunPair,
    *,
    num_speculative_tokens: int | None,
    num_baseline_tokens: int | None = 0,
) -> Finding | None:
    """What the speculative engine's first pass left untried; the first of these that holds. A
    baseline engine that is to speculate must have drafted, too.

    Where answers were broken off there is no telling what whole ones would have tried: the check
    that they are held to tells that, or this one where they are held to none.
    """
    answers = runs.speculative.generations
    if broken := [each for each in answers if each.finish_reason in BROKEN_OFF]:
        return _broken_off(workload, broken)
    return (
        _too_short(workload, answers)
        or _undrafted(runs.speculative.passes[0].counted[0], num_speculative_tokens)
        or _baseline_undrafted(runs.baseline.passes[0].counted[0], num_baseline_tokens)
        or without_effect(workload, runs.baseline.generations)
    )


def _broken_off(workload: Workload, answers: Sequence[Generation]) -> Finding | None:
    untold = [each for each in answers if not checks_for(workload.prompt(each.prompt_id))]
    if not untold:
        return None
    return _finding(
        "broken off",
        *at_most(
            [
                f"`{each.prompt_id}` ended after {len(each.token_ids)} tokens with "
                f"`finish_reason`: {each.finish_reason}"
                for each in untold
            ]
        ),
        hint="vLLM ends an answer so when a token breaks its grammar; the engine's log names it",
    )


def _too_short(workload: Workload, generations: Sequence[Generation]) -> Finding | None:
    lengths = {each.prompt_id: len(each.token_ids) for each in generations}
    free = [
        lengths[each.id] for each in workload.asked if each.id in lengths and not _chooses(each)
    ]
    in_all = sum(lengths.values())
    if not lengths or (median(free) >= MIN_MEDIAN_TOKENS if free else in_all >= MIN_TOKENS):
        return None
    fact = (
        f"the median answer has {median(free):g} tokens, fewer than {MIN_MEDIAN_TOKENS}"
        if free
        else f"all answers together have {in_all} tokens, fewer than {MIN_TOKENS}"
    )
    return _finding(
        "too short",
        f"{fact}; prompts: {len(lengths)}",
        hint="raise `max_tokens`, or ask for longer answers: speculation starts after the first "
        "token",
    )


def _chooses(prompt: Prompt) -> bool:
    return "choice" in prompt.request.get("structured_outputs", {})


def _undrafted(drafts: DraftCounters | None, num_speculative_tokens: int | None) -> Finding | None:
    if (found := _nothing_drafted(drafts, "the first pass")) is not None or drafts is None:
        return found
    num_drafts, num_draft_tokens = drafts.num_drafts, drafts.num_draft_tokens
    if drafts.num_accepted_tokens == num_draft_tokens:
        return _finding(
            "nothing rejected",
            f"accepted draft tokens: all {num_draft_tokens}, in {num_drafts} drafts",
            hint="errors show where drafts are rejected; add a prompt that is harder to guess",
        )
    if (num_speculative_tokens or 1) > 1 and _is_one_token_each(drafts):
        return _finding(
            "one-token drafts",
            f"drafts: {num_drafts}, draft tokens: {num_draft_tokens}",
            f"`num_speculative_tokens`: {num_speculative_tokens}",
            hint="no draft was accepted in part; see what makes the method stop after one token",
        )
    return None


def _baseline_undrafted(
    drafts: DraftCounters | None, num_baseline_tokens: int | None
) -> Finding | None:
    if num_baseline_tokens == 0:
        return None
    return _nothing_drafted(drafts, "the baseline engine's first pass")


def _nothing_drafted(drafts: DraftCounters | None, of: str) -> Finding | None:
    if drafts is None:
        return _finding(
            "counts unknown",
            f"neither the requests nor the engine told draft counts of {of}",
            hint="see in the engine's log whether speculation is on and statistics are logged",
        )
    if drafts.num_draft_tokens == 0:
        return _finding(
            "nothing drafted",
            f"draft tokens in {of}: 0",
            hint="the answers are those of plain decoding; check `speculative_config`, or take "
            "prompts that the method drafts for, such as text to be repeated for `ngram`",
        )
    return None


def _is_one_token_each(drafts: DraftCounters) -> bool:
    """What a grammar refuses is no draft token, so there may be fewer than one in each."""
    return drafts.num_draft_tokens <= drafts.num_drafts and not any(
        drafts.num_accepted_tokens_per_pos[1:]
    )


def _finding(kind: str, *facts: str, hint: str) -> Finding:
    return Finding(kind=kind, prompt_id=None, facts=facts, hint=hint)
