"""Whether an answer holds only what its request allows.

Floor 2: imports from the floors below and its own.
"""

from __future__ import annotations

import re

from pytest_specdec.checks.answer_text import around
from pytest_specdec.checks.finding import Finding
from pytest_specdec.generation import Generation
from pytest_specdec.json_text import quoted
from pytest_specdec.workload import Prompt


def content_not_honoured(prompt: Prompt, answer: Generation) -> Finding | None:
    """The first of these things that does not hold."""
    return _allowed(prompt, answer) or _bad_words(prompt, answer)


def _allowed(prompt: Prompt, answer: Generation) -> Finding | None:
    if "allowed_token_ids" not in prompt.request:
        return None
    allowed = frozenset(prompt.request["allowed_token_ids"])
    for position, token_id in enumerate(answer.token_ids):
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
