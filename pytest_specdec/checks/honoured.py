"""Whether an answer is what its request asked: that holds for each answer by itself, sampled or
not, on both engines.

Where it stopped is `honoured_stop`'s, how long it is `honoured_length`'s, what it holds
`honoured_content`'s. Floor 2: imports from the floors below and its own.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_specdec.checks.each_answer import in_any_answer
from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.honoured_content import content_not_honoured
from pytest_specdec.checks.honoured_length import length_not_honoured
from pytest_specdec.checks.honoured_stop import stop_not_honoured
from pytest_specdec.generation import Generation
from pytest_specdec.workload import Prompt

DECLARING = frozenset(
    {
        "stop",
        "stop_token_ids",
        "min_tokens",
        "ignore_eos",
        "allowed_token_ids",
        "bad_words",
        "n",
        "context_left",
    }
)


def declares_anything(prompt: Prompt) -> bool:
    """Whether the request asks, beyond `max_tokens`, what can be seen in an answer."""
    return not DECLARING.isdisjoint(prompt.request)


def check_honoured(
    prompt: Prompt, generation: Generation, *, max_model_len: int | None
) -> Finding | None:
    """The first thing asked that an answer does not keep, or that there are not so many answers.

    Args:
        max_model_len: the context window; `None` where it is not known, and then nothing is said
            of answers that it may have cut.
    """
    return in_any_answer(
        generation, lambda answer: _answer_not_honoured(prompt, answer, max_model_len)
    ) or _number_not_honoured(prompt, len(generation.answers))


def _answer_not_honoured(
    prompt: Prompt, answer: Generation, max_model_len: int | None
) -> Finding | None:
    if answer.finish_reason not in ("stop", "length"):
        return Finding(
            kind="ended early",
            prompt_id=prompt.id,
            facts=(
                f"the engine gave the request up after {len(answer.token_ids)} tokens",
                f"`finish_reason`: {answer.finish_reason}",
            ),
            hint="the engine's log has the cause",
        )
    return (
        stop_not_honoured(prompt, answer)
        or length_not_honoured(prompt, answer, max_model_len)
        or content_not_honoured(prompt, answer)
    )


def _number_not_honoured(prompt: Prompt, given: int) -> Finding | None:
    asked = prompt.request.get("n", 1)
    if given == asked:
        return None
    return Finding(
        kind="answers missing" if given < asked else "too many answers",
        prompt_id=prompt.id,
        facts=(f"answers: {given}, `n`: {asked}",),
        hint="each of the `n` is a request of its own to the engine; see which one was lost",
    )


def judge_honoured(
    prompt: Prompt,
    *,
    baseline: Generation,
    speculative: Generation,
    max_model_len: int | None,
) -> Finding | None:
    """The defect of one prompt's pair of answers; its first fact says whose it is."""
    own = check_honoured(prompt, speculative, max_model_len=max_model_len)
    other = check_honoured(prompt, baseline, max_model_len=max_model_len)
    found = own or other
    if found is None:
        return None
    if own is None:
        where = "on the baseline engine; the speculative engine's answer is as asked"
    elif other is None:
        where = "on the speculative engine; the baseline engine's answer is as asked"
    elif own.kind != other.kind:
        where = f"on the speculative engine; the baseline engine's answer: {other.kind}"
    else:
        return replace(
            own,
            facts=("on both engines; of the speculative one's answer:", *own.facts),
            hint="the engines do not differ in it; look at the request and the model first",
        )
    return replace(found, facts=(where, *found.facts))
