"""What a step of the draft model and a step of verification cost, in plain steps of the target.
Floor 1.

Measured on the workload's own prompts and at its own load, with short answers of plain engines:
greedy, without grammars. Passes alternate, so that a drift of the machine cancels; the prompts are
in the prefix cache by then, so that every step after a first token is one of decoding.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle, islice
from statistics import median

from pytest_specdec.engines.passes import EngineOf
from pytest_specdec.engines.protocol import Engine, Watch
from pytest_specdec.engines.step_costs import StepCosts
from pytest_specdec.errors import ConfigError, EngineError
from pytest_specdec.generation import Pass
from pytest_specdec.profile import Profile
from pytest_specdec.workload import Prompt, Workload

NUM_TOKENS = 24
NUM_BLOCKS = 3
# How far from the median half of the figures may be, as a share of it.
MAX_SCATTER = 0.2
WITHOUT_MODEL = frozenset({"ngram", "[ngram]", "ngram_gpu", "suffix"})
Step = Callable[[], float]
"""Milliseconds of one step, by a pass of its own."""


class NotMeasured(Exception):
    """One of the costs cannot be had; `str` of it says why."""


class StepCosting:
    """Costs of steps under a profile's workloads, each load of the same prompts measured once.

    Args:
        engine: the loaded engine of a role.
        draft: the draft model loaded alone, in the speculative engine's place.
        watch: told what goes on.
    """

    def __init__(
        self, profile: Profile, *, engine: EngineOf, draft: Callable[[], Engine], watch: Watch
    ) -> None:
        self._profile = profile
        self._engine = engine
        self._draft = draft
        self._watch = watch
        self._known: dict[str, StepCosts] = {}

    def of(self, workload: Workload) -> StepCosts | None:
        """Of one workload; `None` where the baseline engine speculates and no step is plain.

        Raises:
            SpecdecError: what kept the baseline engine from answering.
        """
        if self._profile.is_against_speculation:
            return None
        num_in_flight = min(workload.concurrency, len(workload.asked))
        prompts = [_short(each) for each in workload.asked[:num_in_flight]]
        key = json.dumps([prompt.request for prompt in prompts])
        if key not in self._known:
            self._watch.phase(f"{workload.name}: costs of steps, {num_in_flight} in flight")
            self._known[key] = self._measured(prompts)
        return self._known[key]

    def _measured(self, prompts: Sequence[Prompt]) -> StepCosts:
        notes: list[str] = []

        def noted(what: str, measure: Callable[[Sequence[Prompt]], float]) -> float | None:
            try:
                return measure(prompts)
            except NotMeasured as error:
                notes.append(f"{what}: {error}")
                self._watch.phase(f"note: {notes[-1]}")
                return None

        # The draft comes last: the speculative engine ends for it.
        verification_ratio = noted("verification", self._verification)
        draft_ratio = noted("draft", self._draft_alone)
        return StepCosts(
            draft_ratio=draft_ratio, verification_ratio=verification_ratio, notes=tuple(notes)
        )

    def _verification(self, prompts: Sequence[Prompt]) -> float:
        num_tokens = self._profile.num_speculative_tokens("speculative")
        if num_tokens is None:
            raise NotMeasured("`speculative_config` names no `num_speculative_tokens`")
        many = [*islice(cycle(prompts), len(prompts) * (num_tokens + 1))]
        engine = self._engine("baseline")
        _check_room(engine, engine.generate(prompts, concurrency=len(prompts)), len(many))
        return ratio(_step(engine, prompts), _step(engine, many))

    def _draft_alone(self, prompts: Sequence[Prompt]) -> float:
        config = self._profile.speculative_config
        if config.get("method") in WITHOUT_MODEL:
            return 0.0
        if config.get("method", "draft_model") != "draft_model" or "model" not in config:
            raise NotMeasured(f"what `{config.get('method')}` drafts with is no model of its own")

        def target() -> float:
            return _step(self._engine("baseline"), prompts)()

        def draft() -> float:
            with _not_fatal():
                return _step(self._draft(), prompts)()

        return ratio(target, draft, takes_turns=self._profile.layout == "concurrent")


def ratio(first: Step, second: Step, *, takes_turns: bool = True) -> float:
    """How many steps of the first one of the second is.

    Args:
        takes_turns: whether passes alternate; otherwise the first one's all come before.

    Raises:
        NotMeasured: the passes scatter too widely.
    """
    if not takes_turns:
        plain_ms = _steady(_after_one(first), "milliseconds")
        return _steady(_after_one(second), "milliseconds") / plain_ms
    first(), second()  # kernels are compiled, and the prompts cached
    ratios = []
    for _ in range(NUM_BLOCKS):
        times = first(), second(), second(), first()
        ratios.append((times[1] + times[2]) / (times[0] + times[3]))
    return _steady(ratios, "plain steps")


def _steady(values: Sequence[float], unit: str) -> float:
    """Their median, where most of them are near it: one disturbance counts for nothing, and many
    leave no figure."""
    middle = median(values)
    if median(abs(each - middle) for each in values) > MAX_SCATTER * middle:
        raise NotMeasured(
            f"its passes scatter from {min(values):.3g} to {max(values):.3g} {unit}; other work "
            "disturbs them"
        )
    return middle


def _after_one(step: Step) -> list[float]:
    return [step() for _ in range(1 + 2 * NUM_BLOCKS)][1:]


def _step(engine: Engine, prompts: Sequence[Prompt]) -> Step:
    def step() -> float:
        walk = engine.generate(prompts, concurrency=len(prompts), circumstance="warm-prefix-cache")
        return step_ms(walk)

    return step


def step_ms(walk: Pass) -> float:
    """Milliseconds of a step while all requests are decoded: of the one that began last, since no
    prompt is read beside it any more.

    Raises:
        NotMeasured: its answer has one token.
    """
    last = max(walk.generations, key=lambda each: each.ttft_ms)
    if not last.tpot_ms:
        raise NotMeasured(f"prompt `{last.prompt_id}` leaves no room for an answer")
    return last.tpot_ms


def _check_room(engine: Engine, walk: Pass, num_requests: int) -> None:
    """Refuses more requests than the engine has at work at once."""
    config = engine.facts.config
    most = config.get("scheduler_config.max_num_seqs")
    if most is not None and num_requests > most:
        raise NotMeasured(
            f"it takes {num_requests} requests in flight, and `max_num_seqs` is {most}"
        )
    blocks = config.get("cache_config.num_gpu_blocks")
    size = config.get("cache_config.block_size")
    if blocks is None or size is None:
        return
    each = [-(-(len(own.prompt_token_ids) + NUM_TOKENS) // size) for own in walk.generations]
    needed = sum(each) * (num_requests // len(each))
    if needed > blocks - 1:  # vLLM keeps one for itself
        raise NotMeasured(
            f"{num_requests} requests in flight take {needed} blocks of KV cache, "
            f"and there are {blocks}"
        )


def _short(prompt: Prompt) -> Prompt:
    """The same messages with an answer of just so many tokens."""
    request = {
        "messages": prompt.request["messages"],
        "max_tokens": NUM_TOKENS,
        "ignore_eos": True,
        "temperature": 0,
    }
    return replace(prompt, request=request, json_schema=None, sql=None)


@contextmanager
def _not_fatal() -> Iterator[None]:
    """A draft model that cannot be run alone is no reason to end the pair."""
    try:
        yield
    except (EngineError, ConfigError) as error:
        cause = str(error).partition("\n")[0]
        raise NotMeasured(cause) from error
