"""Whether an answer is as long as its request asked: at most `max_tokens`, at least `min_tokens`,
and past the end token with `ignore_eos`. The context window ends an answer with `length` too.

Floor 2: imports from the floors below and its own.
"""

from __future__ import annotations

from pytest_specdec.checks.applied import CONSTRAINTS, applied
from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.honoured_stop import not_honoured
from pytest_specdec.generation import Generation
from pytest_specdec.workload import Prompt


def length_not_honoured(
    prompt: Prompt, answer: Generation, max_model_len: int | None
) -> Finding | None:
    """The first of these things that does not hold of an answer that came to its end."""
    return (
        _most(prompt, answer, max_model_len)
        or _least(prompt, answer, max_model_len)
        or _ignore_eos(prompt, answer)
    )


def _most(prompt: Prompt, answer: Generation, max_model_len: int | None) -> Finding | None:
    num_tokens, max_tokens = len(answer.token_ids), prompt.request["max_tokens"]
    if num_tokens > max_tokens:
        return not_honoured(
            "too many tokens", prompt, f"tokens: {num_tokens}", f"`max_tokens`: {max_tokens}"
        )
    in_window = len(answer.prompt_token_ids) + num_tokens
    if max_model_len is not None and in_window > max_model_len:
        return not_honoured(
            "too many tokens",
            prompt,
            f"tokens of prompt and answer: {in_window}",
            f"`max_model_len`: {max_model_len}",
        )
    is_cut = num_tokens == max_tokens or _fills_window(answer, max_model_len)
    if answer.finish_reason == "length" and not is_cut:
        return not_honoured(
            "ended early",
            prompt,
            f"`finish_reason`: length, after {num_tokens} of {max_tokens} tokens",
            f"tokens of prompt and answer: {in_window}, `max_model_len`: {max_model_len}",
            hint="drafted tokens that are not accepted must not count towards a limit",
        )
    return None


def _least(prompt: Prompt, answer: Generation, max_model_len: int | None) -> Finding | None:
    """What ends an answer, be it a token or a stop string, comes after `min_tokens` others. Only
    where a grammar allows nothing but the end may it come before."""
    min_tokens = prompt.request.get("min_tokens", 0)
    is_stopped = answer.finish_reason == "stop"
    is_constrained = bool(applied(prompt.request, CONSTRAINTS))
    may_be_short = is_constrained if is_stopped else _fills_window(answer, max_model_len)
    counted, num_tokens = "tokens", len(answer.token_ids)
    if is_stopped:
        counted, num_tokens = "tokens before the one that ends it", num_tokens - 1
    if not min_tokens or num_tokens >= min_tokens or may_be_short:
        return None
    return not_honoured(
        "too few tokens",
        prompt,
        f"{counted}: {num_tokens}, `min_tokens`: {min_tokens}",
        f"`finish_reason`: {answer.finish_reason}, `stop_reason`: {answer.stop_reason}",
        hint="each accepted token must be counted before the next one is verified",
    )


def _ignore_eos(prompt: Prompt, answer: Generation) -> Finding | None:
    """A stop token is one even if it is an end token besides."""
    stops = prompt.request.get("stop_token_ids", ())
    is_asked_for = isinstance(answer.stop_reason, str) or answer.stop_reason in stops
    if not prompt.request.get("ignore_eos") or answer.finish_reason != "stop" or is_asked_for:
        return None
    return not_honoured(
        "ended early",
        prompt,
        f"an end token ended the answer after {len(answer.token_ids)} tokens, with `ignore_eos`: "
        f"{', '.join(map(str, answer.token_ids[-1:]))}",
    )


def _fills_window(answer: Generation, max_model_len: int | None) -> bool:
    """Whether nothing more fits; taken to be so where the window is not known."""
    in_window = len(answer.prompt_token_ids) + len(answer.token_ids)
    return max_model_len is None or in_window == max_model_len
