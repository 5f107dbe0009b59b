"""One engine's pass over a workload, with those who wait told how far it has come. Floor 1.

`loads` says in which order passes are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pytest_specdec.conditions import Conditions
from pytest_specdec.engines.protocol import Engine, Progress, Watch
from pytest_specdec.generation import Pass, Role
from pytest_specdec.observer import Observer
from pytest_specdec.workload import Prompt, Workload

WARM_UP_TOKENS = 4
EngineOf = Callable[[Role], Engine]
"""The loaded engine of that role."""


class Passes:
    """What is asked of a pair's engines.

    Args:
        engine: loads them when they are first asked for.
        observer: notes what else the machine did.
        watch: told what goes on.
    """

    def __init__(self, engine: EngineOf, *, observer: Observer, watch: Watch) -> None:
        self._engine = engine
        self._observer = observer
        self._watch = watch

    def announce(self, workload: Workload, what: str) -> None:
        """Says what comes next."""
        self._watch.phase(
            f"{workload.name}: {what} over {len(workload.asked)} prompts, "
            f"{workload.concurrency} in flight"
        )

    def in_order(
        self, order: Sequence[Role], workload: Workload, which: str
    ) -> tuple[tuple[tuple[Role, Pass], ...], Conditions]:
        """Passes in that order, and what else went on meanwhile."""
        self._observer.start()
        passes = tuple(
            (role, self.one(role, workload, f"{which}, pass {number} of {len(order)}"))
            for number, role in enumerate(order, start=1)
        )
        return passes, self._observer.stop()

    def one(
        self, role: Role, workload: Workload, which: str, *, circumstance: str | None = None
    ) -> Pass:
        """One engine's answers to all prompts.

        Raises:
            CircumstanceUnsupported: the engine cannot be brought there.
        """
        what = f"{workload.name}: {role} engine, {which}"
        progress = self._progress(what, len(workload.asked))

        def watched(facts: Mapping[str, int]) -> None:
            self._observer.sample()
            progress(facts)

        return self._engine(role).generate(
            workload.asked,
            concurrency=workload.concurrency
            if circumstance is None
            else workload.concurrency_in(circumstance),
            circumstance=circumstance,
            progress=watched,
        )

    def warm_up(self, role: Role, workload: Workload) -> None:
        """A few tokens of every prompt: grammars and kernels are compiled before a clock runs."""
        engine = self._engine(role)
        what = f"{workload.name}: warming up the {role} engine"
        engine.generate(
            [_shortened(prompt) for prompt in workload.asked],
            concurrency=workload.concurrency,
            progress=self._progress(what, len(workload.asked)),
        )

    def control(self, workload: Workload, prompts: Sequence[Prompt], *, concurrency: int) -> Pass:
        """The baseline engine's answers once more, in a batch of another kind."""
        what = f"{workload.name}: control run of the baseline engine"
        self._watch.phase(f"{what} over {len(prompts)} prompts, {concurrency} in flight")
        return self._engine("baseline").generate(
            prompts, concurrency=concurrency, progress=self._progress(what, len(prompts))
        )

    def _progress(self, what: str, num_prompts: int) -> Progress:
        self._watch.progress(what)
        return lambda facts: self._watch.progress(
            f"{what}: {facts['num_finished']} of {num_prompts} prompts, "
            f"{facts['num_output_tokens']} tokens"
        )


def _shortened(prompt: Prompt) -> Prompt:
    tokens = min(WARM_UP_TOKENS, prompt.request["max_tokens"])
    return replace(prompt, request={**prompt.request, "max_tokens": tokens, "min_tokens": 0})
