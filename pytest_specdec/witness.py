"""The baseline engine as a witness: what it says of a divergence, asked only where there is one.

Costs, by workload: one pass of the baseline engine over all prompts, up to `NUM_ALONE` prompts
alone, and for each prompt that diverged two prefills, plus one for each speculative answer at level
`near-tie`. Floor 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pytest_specdec.checks.applied import MASKS, PENALTIES, applied
from pytest_specdec.checks.evidence import (
    Control,
    Evidence,
    Gap,
    IdentityRules,
    Rescored,
)
from pytest_specdec.checks.identity import Divergence, compare, distinct_answers
from pytest_specdec.engines.asked import Asked
from pytest_specdec.errors import EngineError, NotRecorded
from pytest_specdec.generation import Generation, Pass, RunPair, TokenScore
from pytest_specdec.workload import Prompt, Workload

CONTEXT_TOKENS = 8
NUM_ALONE = 4


def other_concurrency(concurrency: int, num_prompts: int) -> int | None:
    """Twice as many in flight, or half where there are no more; `None` where there is no other."""
    in_flight = min(concurrency, num_prompts)
    if num_prompts == 1:
        return None
    return min(2 * in_flight, num_prompts) if in_flight < num_prompts else in_flight // 2


@dataclass
class Witness:
    """The baseline engine, on one workload's divergences."""

    asked: Asked
    workload: Workload
    runs: RunPair
    rules: IdentityRules
    _together: Pass | None = None
    _alone: dict[str, Generation] = field(default_factory=dict)
    _unrecorded: list[str] = field(default_factory=list)

    def evidence(self, divergence: Divergence) -> Evidence | None:
        """What the engine says of both tokens; `None` when it cannot be asked."""
        prompt = self.workload.prompt(divergence.baseline.prompt_id)
        self._unrecorded = []
        try:
            context, candidates = self._candidates(divergence)
        except NotRecorded as error:
            self._unrecorded.append(str(error))
            context, candidates = (), (None, None)
        except EngineError:
            return None
        controls = self._controls(prompt, divergence)
        rescored = self._rescored(prompt) if self.rules.level == "near-tie" else None
        return Evidence(
            context="".join(score.text for score in context[-CONTEXT_TOKENS:]),
            candidates=candidates,
            controls=controls,
            rescored=rescored,
            unrecorded=tuple(dict.fromkeys(self._unrecorded)),
        )

    def is_near(self, answer: Generation) -> bool:
        """Whether an answer that differs from the first one is as good at the profile's level:
        each token the engine's most likely one, or near it. What cannot be told is not near."""
        prompt = self.workload.prompt(answer.prompt_id)
        divergence = compare(self.runs.baseline.passes[0].generation(prompt.id), answer)
        if self.rules.level == "exact" or divergence is None or divergence.is_cut_short:
            return False
        gaps = self._told(prompt, answer, divergence)
        return gaps is not None and all(self.rules.is_near(gap.nats) for gap in gaps)

    def _candidates(
        self, divergence: Divergence
    ) -> tuple[Sequence[TokenScore], tuple[TokenScore | None, TokenScore | None]]:
        """The tokens before the difference, and the two that differ, scored."""
        before = divergence.baseline.token_ids[: divergence.position]
        context: Sequence[TokenScore] = ()
        scored: list[TokenScore | None] = []
        for token_id in divergence.token_ids:
            scores: Sequence[TokenScore] = ()
            if token_id is not None:
                scores = self._score(divergence.baseline, (*before, token_id))
            context = scores[:-1] or context
            scored.append(scores[-1] if scores else None)
        return context, (scored[0], scored[1])

    def _controls(self, prompt: Prompt, divergence: Divergence) -> tuple[Control, ...] | None:
        """What the control run did; `None` where none was made."""
        if divergence.unrepeated == "baseline":
            # Its own passes say it already.
            return None
        first = self.runs.baseline.passes[0].generation(prompt.id)
        controls = []
        try:
            for batch, again in self._again(prompt):
                found = compare(first, again)
                position = None if found is None else found.position
                controls.append(Control(batch=batch, position=position))
        except NotRecorded as error:
            self._unrecorded.append(str(error))
        except EngineError:
            return None
        return tuple(controls)

    def _again(self, prompt: Prompt) -> Iterator[tuple[str, Generation]]:
        """The baseline engine's answers in other batches than before; each is asked for once."""
        prompts = self.workload.asked
        concurrency = other_concurrency(self.workload.concurrency, len(prompts))
        if concurrency is not None:
            if self._together is None:
                self._together = self.asked.control(prompts, concurrency=concurrency)
            batch = f"all {len(prompts)} prompts, {concurrency} in flight"
            yield batch, self._together.generation(prompt.id)
        if prompt.id not in self._alone and len(self._alone) < NUM_ALONE:
            again = self.asked.control((prompt,), concurrency=1)
            self._alone[prompt.id] = again.generation(prompt.id)
        if prompt.id in self._alone:
            yield "the prompt alone", self._alone[prompt.id]

    def _rescored(self, prompt: Prompt) -> tuple[Rescored, ...] | None:
        """The speculative answers under the engine; `None` where one cannot be told of."""
        first = self.runs.baseline.passes[0].generation(prompt.id)
        rescored = []
        for answer in distinct_answers(self.runs, "speculative", prompt.id):
            divergence = compare(first, answer)
            gaps = self._told(prompt, answer, divergence)
            if gaps is None:
                return None
            rescored.append(Rescored(divergence=divergence, gaps=gaps))
        return tuple(rescored)

    def _told(
        self, prompt: Prompt, answer: Generation, divergence: Divergence | None
    ) -> tuple[Gap, ...] | None:
        """An answer's tokens under the engine, under a mask those of the first difference alone;
        `None` where that would decide nothing, or where it cannot be done."""
        if applied(prompt.request, PENALTIES):
            return None
        is_masked = bool(applied(prompt.request, MASKS))
        try:
            return tuple(self._gap(divergence) if is_masked else self._gaps(answer))
        except NotRecorded as error:
            self._unrecorded.append(str(error))
        except EngineError:
            pass
        return None

    def _gaps(self, answer: Generation) -> Iterator[Gap]:
        for position, score in enumerate(self._score(answer, answer.token_ids)):
            yield Gap(
                position=position,
                score=score,
                rival=score.argmax_text,
                rival_logprob=score.argmax_logprob,
            )

    def _gap(self, divergence: Divergence | None) -> Iterator[Gap]:
        """A mask is the same for both tokens there, and what it takes out is unknown."""
        if divergence is None:
            return
        own, other = self._candidates(divergence)[1]
        if own is not None and other is not None:
            yield Gap(
                position=divergence.position,
                score=other,
                rival=own.text,
                rival_logprob=own.logprob,
            )

    def _score(self, answer: Generation, token_ids: Sequence[int]) -> Sequence[TokenScore]:
        return self.asked.score(answer.prompt_token_ids, token_ids)
