"""Whether an answer holds only what its request allows.

Floor 2: imports from the floors below and its own.
"""

from __future__ import annotations

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
    """vLLM bars the usual tokens of each word, with and without a space before it, so just these
    are looked for: other tokens may spell the word, whether anything is wrong or not."""
    words = prompt.request.get("bad_words")
    if words is None:
        return None
    if answer.bad_words_token_ids is None:
        return Finding(
            kind="not judged",
            prompt_id=prompt.id,
            facts=("the engine did not tell which tokens are barred for `bad_words`",),
            hint="run the workload again",
        )
    for barred in answer.bad_words_token_ids:
        for position in range(len(answer.token_ids) - len(barred) + 1):
            if answer.token_ids[position : position + len(barred)] == barred:
                return Finding(
                    kind="bad word",
                    prompt_id=prompt.id,
                    facts=(
                        f"tokens from {position} on are {', '.join(map(str, barred))}, which are "
                        f"barred for `bad_words`: {', '.join(map(quoted, words))}",
                        f"the answer: {quoted(answer.text)}",
                    ),
                    hint="at every draft position the tokens before it decide, drafted ones too",
                )
    return None
