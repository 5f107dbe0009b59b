"""Troubles any structured answer can have, JSON or SQL, told apart before it is parsed.

Each is named for what a person would do about it, so that "invalid" is left for the answers that
are none of these. Floor 2: imports from the floors below and its own.
"""

from __future__ import annotations

import re

from pytest_specdec.checks.finding import Finding, finding_on
from pytest_specdec.generation import Generation
from pytest_specdec.json_text import quoted
from pytest_specdec.workload import Prompt

WHITESPACE_RUNAWAY = 32
"""Whitespace characters at the end of a cut answer from which it counts as a runaway."""

_SPECIAL_TOKEN = re.compile(r"<\|[^\s|<>]{1,40}\|>|</s>")


def ended_badly(prompt: Prompt, generation: Generation) -> Finding | None:
    """An answer that is no answer, whatever its text: broken off, run away, or empty."""
    text = generation.text
    if generation.finish_reason == "error":
        return _ended_in_error(prompt, generation)
    if generation.finish_reason == "abort":
        return finding_on(
            "aborted", prompt, f"the engine gave the request up after {_size(generation)}"
        )
    num_trailing = len(text) - len(text.rstrip())
    if generation.finish_reason == "length" and num_trailing >= WHITESPACE_RUNAWAY:
        return finding_on(
            "whitespace runaway",
            prompt,
            f"the answer ends in {num_trailing} characters of whitespace, cut at `max_tokens`",
            f"before them: {quoted(text.rstrip()[-60:])}",
            hint="bound the whitespace in the grammar, or see whether the baseline engine does "
            "the same",
            position=len(text) - num_trailing,
        )
    if not text.strip():
        return finding_on(
            "empty",
            prompt,
            f"the answer holds no text: {quoted(text)} from {len(generation.token_ids)} tokens, "
            f"`finish_reason`: {generation.finish_reason}",
        )
    return None


def spoiled(prompt: Prompt, generation: Generation) -> Finding | None:
    """The trouble that explains why an answer does not parse, if it is one of these."""
    text = generation.text
    special = _SPECIAL_TOKEN.search(text)
    if special is not None:
        return finding_on(
            "special token",
            prompt,
            f"the text holds `{special.group()}` at character {special.start()}",
            f"around it: {around(text, special.start())}",
            position=special.start(),
        )
    if text.lstrip().startswith("```"):
        return finding_on(
            "fenced",
            prompt,
            f"the answer is wrapped in a Markdown fence: {quoted(text.strip(), 80)}",
            hint="constrain the prompt, or ask for the bare answer",
        )
    if generation.finish_reason == "length":
        return truncated(prompt, generation)
    return None


def truncated(prompt: Prompt, generation: Generation) -> Finding:
    """The answer was cut at `max_tokens`."""
    return finding_on(
        "truncated",
        prompt,
        f"the answer was cut at `max_tokens`: {prompt.request.get('max_tokens')}",
        f"it ends: {quoted(generation.text[-60:])}",
        hint="raise `max_tokens`, or bound the strings and arrays of the constraint",
    )


def around(text: str, position: int) -> str:
    """The text around a position, quoted on one line."""
    return quoted(text[max(0, position - 30) : position + 30])


def _ended_in_error(prompt: Prompt, generation: Generation) -> Finding:
    end = f"the engine ended the request after {_size(generation)} with `finish_reason`: error"
    cut = f"the text was cut; it ends: {quoted(generation.text[-60:])}"
    if not prompt.is_constrained:
        return finding_on("engine error", prompt, end, cut, hint="the engine's log has the cause")
    return finding_on(
        "grammar violation",
        prompt,
        end,
        cut,
        "vLLM raises nothing when a token breaks the grammar; this is how it shows",
        hint="the engine's log names the token the grammar refused",
    )


def _size(generation: Generation) -> str:
    return f"{len(generation.token_ids)} tokens"
