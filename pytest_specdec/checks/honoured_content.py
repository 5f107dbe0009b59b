"""Whether an answer holds only what its request allows, and as many answers as it asked for.

Floor 2: imports from the floors below and its own.
"""

from __future__ import annotations

import re

from pytest_specdec.checks.answer_text import around
from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.identity import first_difference
from pytest_specdec.generation import Generation
from pytest_specdec.json_text import quoted
from pytest_specdec.workload import Prompt


def content_not_honoured(prompt: Prompt, answer: Generation) -> Finding | None:
    """The first of these things that does not hold."""
    return _allowed(prompt, answer) or _bad_words(prompt, answer) or _answers(prompt, answer)


def _allowed(prompt: Prompt, answer: Generation) -> Finding | None:
    if "allowed_token_ids" not in prompt.request:
        return None
    allowed = frozenset(prompt.request["allowed_token_ids"])
    for token_ids in (answer.token_ids, *answer.others):
        for position, token_id in enumerate(token_ids):
            if token_id not in allowed:
                return Finding(
                    kind="token not allowed",
                    prompt_id=prompt.id,
                    facts=(
                        f"token {position} is {token_id}, not in `allowed_token_ids`",
                        f"the answer: {quoted(answer.text)}",
                    ),
                    hint="the mask must hold at every draft position and for the token after them",
                )
    return None


def _bad_words(prompt: Prompt, answer: Generation) -> Finding | None:
    """vLLM bars the token sequences of a word, with and without a space before it. Tokens are not
    known here, so the text is searched for it as a whole word: inside a longer word it is made of
    other tokens, as it rarely is when it stands alone."""
    for word in prompt.request.get("bad_words", ()):
        bare = word.strip()
        found = re.search(rf"(?<!\w){re.escape(bare)}(?!\w)", answer.text) if bare else None
        if found is not None:
            return Finding(
                kind="bad word",
                prompt_id=prompt.id,
                facts=(
                    f"the text holds {quoted(bare)} of `bad_words` at character {found.start()}",
                    f"around it: {around(answer.text, found.start())}",
                ),
                hint="vLLM bars its usual tokens only; see if the answer spells it with others",
            )
    return None


def _answers(prompt: Prompt, answer: Generation) -> Finding | None:
    asked, given = prompt.request.get("n", 1), 1 + len(answer.others)
    if given != asked:
        return Finding(
            kind="answers missing" if given < asked else "too many answers",
            prompt_id=prompt.id,
            facts=(f"answers: {given}, `n`: {asked}",),
            hint="each of the `n` is a request of its own to the engine; see which one was lost",
        )
    for number, token_ids in enumerate(answer.others if prompt.is_greedy else (), start=2):
        position = first_difference(answer.token_ids, token_ids)
        if position is not None:
            return Finding(
                kind="answers differ",
                prompt_id=prompt.id,
                facts=(
                    f"greedy answers 1 and {number} of {asked} differ first at token {position}",
                ),
                hint="greedy answers to one prompt are the same; look at what the batch shares",
            )
    return None
