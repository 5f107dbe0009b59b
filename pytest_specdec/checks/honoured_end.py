"""Whether an answer ended as its request asked: at a stop, at `max_tokens`, not before
`min_tokens`.

What vLLM does is taken as the meaning: the stop string is cut off the text, a token of
`stop_token_ids` is the last one, and the context window ends an answer with `length`. Floor 2:
imports from the floors below and its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_specdec.checks.finding import Finding
from pytest_specdec.generation import Generation
from pytest_specdec.json_text import quoted
from pytest_specdec.workload import Prompt


def end_not_honoured(
    prompt: Prompt, answer: Generation, max_model_len: int | None
) -> Finding | None:
    """The first of these things that does not hold of an answer that came to its end."""
    return (
        _stop(prompt, answer)
        or _stop_token_ids(prompt, answer)
        or _most(prompt, answer, max_model_len)
        or _least(prompt, answer, max_model_len)
        or _ignore_eos(prompt, answer)
    )


def stop_strings(prompt: Prompt) -> Sequence[str]:
    """The request's `stop`, which may be one string."""
    stop = prompt.request.get("stop", ())
    return (stop,) if isinstance(stop, str) else tuple(stop)


def _stop(prompt: Prompt, answer: Generation) -> Finding | None:
    stops = stop_strings(prompt)
    if isinstance(answer.stop_reason, str) and answer.stop_reason not in stops:
        return _finding(
            "wrong stop",
            prompt,
            f"`stop_reason`: {quoted(answer.stop_reason)}, which is not in `stop`",
        )
    if isinstance(answer.stop_reason, str) and answer.finish_reason != "stop":
        return _wrong_reason(prompt, answer)
    if prompt.request.get("min_tokens", 0):
        return None  # before that many tokens a stop string is text like any other
    for stop in stops:
        position = answer.text.find(stop)
        if position >= 0:
            return _finding(
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
            return _finding(
                "token after stop",
                prompt,
                f"token {position} is {token_id} of `stop_token_ids`; after it: "
                f"{len(answer.token_ids) - position - 1} tokens",
                hint="tokens accepted in one step must be cut after the one that stops",
            )
    last = answer.token_ids[-1] if answer.token_ids else None
    if isinstance(answer.stop_reason, int) and answer.stop_reason != last:
        return _finding(
            "wrong stop", prompt, f"`stop_reason`: {answer.stop_reason}, but the last token: {last}"
        )
    if last in stops and answer.finish_reason != "stop":
        return _wrong_reason(prompt, answer)
    return None


def _most(prompt: Prompt, answer: Generation, max_model_len: int | None) -> Finding | None:
    num_tokens, max_tokens = len(answer.token_ids), prompt.request["max_tokens"]
    longest = max((num_tokens, *map(len, answer.others)))
    if longest > max_tokens:
        return _finding(
            "too many tokens", prompt, f"tokens: {longest}", f"`max_tokens`: {max_tokens}"
        )
    in_window = len(answer.prompt_token_ids) + longest
    if max_model_len is not None and in_window > max_model_len:
        return _finding(
            "too many tokens",
            prompt,
            f"tokens of prompt and answer: {in_window}",
            f"`max_model_len`: {max_model_len}",
        )
    is_cut = num_tokens == max_tokens or _fills_window(answer, max_model_len)
    if answer.finish_reason == "length" and not is_cut:
        return _finding(
            "ended early",
            prompt,
            f"`finish_reason`: length, after {num_tokens} of {max_tokens} tokens",
            f"tokens of prompt and answer: {len(answer.prompt_token_ids) + num_tokens}, "
            f"`max_model_len`: {max_model_len}",
            hint="drafted tokens that are not accepted must not count towards a limit",
        )
    return None


def _least(prompt: Prompt, answer: Generation, max_model_len: int | None) -> Finding | None:
    num_tokens, min_tokens = len(answer.token_ids), prompt.request.get("min_tokens", 0)
    is_cut = answer.finish_reason == "length" and _fills_window(answer, max_model_len)
    if num_tokens >= min_tokens or is_cut:
        return None
    return _finding(
        "too few tokens",
        prompt,
        f"tokens: {num_tokens}, `min_tokens`: {min_tokens}",
        f"`finish_reason`: {answer.finish_reason}, `stop_reason`: {answer.stop_reason}",
        hint="each accepted token must be counted before the next one is verified",
    )


def _ignore_eos(prompt: Prompt, answer: Generation) -> Finding | None:
    is_end_token = answer.finish_reason == "stop" and answer.stop_reason is None
    if not prompt.request.get("ignore_eos") or not is_end_token:
        return None
    return _finding(
        "ended early",
        prompt,
        f"the end token ended the answer after {len(answer.token_ids)} tokens, with `ignore_eos`",
    )


def _fills_window(answer: Generation, max_model_len: int | None) -> bool:
    """Whether nothing more fits; taken to be so where the window is not known."""
    in_window = len(answer.prompt_token_ids) + len(answer.token_ids)
    return max_model_len is None or in_window == max_model_len


def _wrong_reason(prompt: Prompt, answer: Generation) -> Finding:
    return _finding(
        "wrong stop",
        prompt,
        f"`stop_reason`: {answer.stop_reason}, last token: {answer.token_ids[-1:]}",
        f"`finish_reason`: {answer.finish_reason}, where it must be stop",
    )


def _finding(
    kind: str,
    prompt: Prompt,
    *facts: str,
    hint: str = "compare with the engine's stop check, which sees several tokens in one step",
) -> Finding:
    return Finding(kind=kind, prompt_id=prompt.id, facts=facts, hint=hint)
