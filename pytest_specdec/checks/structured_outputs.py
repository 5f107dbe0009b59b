"""Whether an answer is what `structured_outputs` of type `regex` or `choice` holds the engine to.

A `grammar` is not read here: what a valid answer under one is, `expect` says. Floor 2: imports from
the floors below and its own.
"""

from __future__ import annotations

import re
from typing import Any

from pytest_specdec.checks.answer_text import ended_badly, spoiled
from pytest_specdec.checks.finding import Finding, finding_on
from pytest_specdec.generation import Generation
from pytest_specdec.json_text import quoted, shortened
from pytest_specdec.workload import Prompt


def check_regex(prompt: Prompt, generation: Generation) -> Finding | None:
    """The answer's defect against `structured_outputs.regex`, which all of it must match."""
    regex: str = _declared(prompt, "regex")
    text = generation.text
    fits = re.fullmatch(regex, text) is not None
    return _explained(prompt, generation, fits=fits) or (
        None if fits else _mismatch(prompt, text, regex)
    )


def check_choice(prompt: Prompt, generation: Generation) -> Finding | None:
    """The answer's defect against `structured_outputs.choice`, of which it must be one."""
    choices: list[str] = _declared(prompt, "choice")
    text = generation.text
    fits = text in choices
    return _explained(prompt, generation, fits=fits) or (
        None if fits else _not_a_choice(prompt, text, choices)
    )


def _declared(prompt: Prompt, key: str) -> Any:
    constraint = prompt.request.get("structured_outputs", {}).get(key)
    if constraint is None:
        raise ValueError(f"prompt `{prompt.id}` declares no `structured_outputs.{key}`")
    return constraint


def _explained(prompt: Prompt, generation: Generation, *, fits: bool) -> Finding | None:
    """The trouble that any answer can have; one that fits and ended by itself has none."""
    if fits and generation.finish_reason == "stop":
        return None  # blank, fenced or in special tokens: as it was asked for
    return ended_badly(prompt, generation) or (None if fits else spoiled(prompt, generation))


def _mismatch(prompt: Prompt, text: str, regex: str) -> Finding:
    begin = re.match(regex, text)
    if begin is not None and begin.end() > 0:
        return finding_on(
            "text after the end",
            prompt,
            f"a whole match of the regex ends before character {begin.end()}; "
            f"after it: {quoted(text[begin.end() :])}",
            f"regex: {quoted(regex)}",
            position=begin.end(),
        )
    hint = None
    if re.fullmatch(regex, text, re.DOTALL):
        hint = "`.` matches a newline in xgrammar and not in Python's `re`: write `[^\\n]`"
    return finding_on(
        "regex mismatch",
        prompt,
        "the answer does not match the whole of the regex",
        f"regex: {quoted(regex)}",
        f"answer: {quoted(text)}",
        hint=hint,
    )


def _not_a_choice(prompt: Prompt, text: str, choices: list[str]) -> Finding:
    shown = f"choices: {shortened(choices)}"
    begin = max((each for each in choices if text.startswith(each)), key=len, default=None)
    if begin is not None:
        return finding_on(
            "text after the end",
            prompt,
            f"the choice {quoted(begin)} ends before character {len(begin)}; "
            f"after it: {quoted(text[len(begin) :])}",
            shown,
            position=len(begin),
        )
    return finding_on(
        "not a choice",
        prompt,
        f"the answer is none of the {len(choices)} choices: {quoted(text)}",
        shown,
    )
