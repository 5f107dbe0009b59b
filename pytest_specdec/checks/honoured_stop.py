"""Whether an answer ended at the first of its request's stops, and says so.

What vLLM does is taken as the meaning: the stop string is cut off the text, and a token of
`stop_token_ids` is the last one. Floor 2: imports from the floors below and its own.
"""

from __future__ import annotations

from pytest_specdec.checks.finding import Finding
from pytest_specdec.generation import Generation
from pytest_specdec.json_text import quoted
from pytest_specdec.workload import Prompt


def stop_not_honoured(prompt: Prompt, answer: Generation) -> Finding | None:
    """The first thing about stops that does not hold of an answer that came to its end."""
    return _stop(prompt, answer) or _stop_token_ids(prompt, answer)


def _stop(prompt: Prompt, answer: Generation) -> Finding | None:
    asked = prompt.request.get("stop", ())
    stops = (asked,) if isinstance(asked, str) else asked
    if isinstance(answer.stop_reason, str) and answer.stop_reason not in stops:
        return not_honoured(
            "wrong stop",
            prompt,
            f"`stop_reason`: {quoted(answer.stop_reason)}, which is not in `stop`",
        )
    if answer.stop_reason is not None and answer.finish_reason != "stop":
        return _wrong_reason(prompt, answer)
    if prompt.request.get("min_tokens", 0):
        # Within the first `min_tokens` tokens a stop string is text like any other, and where in
        # the text they end is not told.
        return None
    for stop in stops:
        position = answer.text.find(stop)
        if position >= 0:
            return not_honoured(
                "text after stop",
                prompt,
                f"the text holds {quoted(stop)} of `stop` at character {position}",
                f"from there on: {quoted(answer.text[position:])}",
                hint="tokens accepted in one step must be searched for a stop string one by one",
            )
    return None


def _stop_token_ids(prompt: Prompt, answer: Generation) -> Finding | None:
    stops = prompt.request.get("stop_token_ids", ())
    for position, token_id in enumerate(answer.token_ids[:-1]):
        if token_id in stops:
            return _token_after_stop(prompt, answer, position)
    last = answer.token_ids[-1] if answer.token_ids else None
    if isinstance(answer.stop_reason, int) and answer.stop_reason != last:
        return not_honoured(
            "wrong stop", prompt, f"`stop_reason`: {answer.stop_reason}, but the last token: {last}"
        )
    if last in stops and answer.finish_reason != "stop":
        return _wrong_reason(prompt, answer)
    if last in stops and answer.stop_reason is None and prompt.request.get("ignore_eos"):
        # Else it may be the end token, of which no more is said.
        return not_honoured("wrong stop", prompt, f"`stop_reason`: None, where it must be {last}")
    return None


def _token_after_stop(prompt: Prompt, answer: Generation, position: int) -> Finding:
    num_after = len(answer.token_ids) - position - 1
    told = (
        f"token {position} is {answer.token_ids[position]} of `stop_token_ids`; after it: "
        f"{num_after} tokens"
    )
    min_tokens = prompt.request.get("min_tokens", 0)
    if position < min_tokens:
        return not_honoured(
            "token after stop",
            prompt,
            told,
            f"`min_tokens`: {min_tokens}, which bars it there",
            hint="the end must be barred at every draft position up to `min_tokens`",
        )
    return not_honoured(
        "token after stop",
        prompt,
        told,
        hint="tokens accepted in one step must be cut after the one that stops",
    )


def _wrong_reason(prompt: Prompt, answer: Generation) -> Finding:
    return not_honoured(
        "wrong stop",
        prompt,
        f"`stop_reason`: {answer.stop_reason}, last token: {answer.token_ids[-1:]}",
        f"`finish_reason`: {answer.finish_reason}, where it must be stop",
    )


def not_honoured(
    kind: str,
    prompt: Prompt,
    *facts: str,
    hint: str = "compare with the engine's stop check, which sees several tokens in one step",
) -> Finding:
    """The finding of a thing asked and not kept."""
    return Finding(kind=kind, prompt_id=prompt.id, facts=facts, hint=hint)
