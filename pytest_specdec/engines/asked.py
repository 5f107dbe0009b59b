"""The baseline engine, asked afterwards about one workload; every question is kept with its answer.

`witness` asks. What is kept goes into a recording, so that the same questions can be answered
without an engine. Floor 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pytest_specdec.engines.protocol import Pair
from pytest_specdec.errors import EngineError
from pytest_specdec.generation import Pass, TokenScore
from pytest_specdec.workload import Prompt, Workload

T = TypeVar("T")
Question = TypeVar("Question")

ControlRun = tuple[tuple[str, ...], int]
"""The prompts by id, and how many are in flight."""
Scoring = tuple[tuple[int, ...], tuple[int, ...]]
"""A prompt's tokens, and those of the answer that are scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """By question, what the engine said; a text is why it said nothing."""

    controls: dict[ControlRun, Pass | str] = field(default_factory=dict)
    scores: dict[Scoring, tuple[TokenScore, ...] | str] = field(default_factory=dict)


class Asked:
    """Questions about one workload, to the baseline engine of a pair or to its recording."""

    def __init__(self, pair: Pair, workload: Workload) -> None:
        self._pair = pair
        self._workload = workload
        self.answers = Answers()

    def control(self, prompts: Sequence[Prompt], *, concurrency: int) -> Pass:
        """The engine's answers once more, in a batch of another kind."""
        question = tuple(prompt.id for prompt in prompts), concurrency
        return _kept(
            self.answers.controls,
            question,
            lambda: self._pair.control(self._workload, prompts, concurrency=concurrency),
        )

    def score(
        self, prompt_token_ids: Sequence[int], token_ids: Sequence[int]
    ) -> tuple[TokenScore, ...]:
        """Tokens of an answer under the engine's own distribution."""
        return _kept(
            self.answers.scores,
            (tuple(prompt_token_ids), tuple(token_ids)),
            lambda: self._pair.score(self._workload, prompt_token_ids, token_ids),
        )


def _kept(answers: dict[Question, T | str], question: Question, ask: Callable[[], T]) -> T:
    try:
        answer = ask()
    except EngineError as error:
        answers[question] = str(error)
        raise
    answers[question] = answer
    return answer
