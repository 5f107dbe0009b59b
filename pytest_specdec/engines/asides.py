"""What engines are asked beside a workload's passes, once, in the first load. Floor 1.

The prompts once more under each circumstance; the prompts that are to be refused; and the baseline
engine's scores of what both engines sampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_specdec.engines.passes import Passes
from pytest_specdec.engines.protocol import Engine
from pytest_specdec.engines.taken import Taken
from pytest_specdec.errors import CircumstanceUnsupported, RequestRefused
from pytest_specdec.generation import ROLES, Pass, Refusal, Role, SampleScores
from pytest_specdec.workload import Prompt, Workload


def retakes(
    passes: Passes, role: Role, workload: Workload
) -> Mapping[tuple[str, Role], Pass | str]:
    """The workload's prompts once more under each of its circumstances; a word of why, where the
    engine cannot be brought there."""
    again: dict[tuple[str, Role], Pass | str] = {}
    for circumstance in workload.again:
        try:
            taken: Pass | str = passes.one(role, workload, circumstance, circumstance=circumstance)
        except CircumstanceUnsupported as error:
            taken = str(error)
        again[circumstance, role] = taken
    return again


def refusals(engine: Engine, role: Role, workload: Workload) -> tuple[Refusal, ...]:
    """What the engine says to each prompt that it is to refuse."""
    return tuple(
        Refusal(role=role, prompt_id=prompt.id, said=_refusal(engine, prompt))
        for prompt in workload.prompts
        if prompt.is_refused
    )


def sampled(workload: Workload) -> tuple[Prompt, ...]:
    """The prompts whose answers are scored; none at a point of a sweep, which is timed alone."""
    if workload.point is not None:
        return ()
    return tuple(prompt for prompt in workload.asked if prompt.is_own_distribution)


def sample_scores(
    engine: Engine, prompts: Sequence[Prompt], taken: Taken
) -> tuple[SampleScores, ...]:
    """The sampled answers of both engines' first passes, by the baseline engine."""
    max_model_len = engine.facts.config.get("model_config.max_model_len")
    answers = (
        (role, each)
        for role in ROLES
        for prompt in prompts
        for each in taken.of(role)[0].generation(prompt.id).answers
    )
    return tuple(
        SampleScores(
            role=role,
            prompt_id=answer.prompt_id,
            scores=engine.score(
                answer.prompt_token_ids,
                _scored_part(answer.prompt_token_ids, answer.token_ids, max_model_len),
            ),
        )
        for role, answer in answers
    )


def _refusal(engine: Engine, prompt: Prompt) -> str | None:
    """`None` if it answers."""
    try:
        engine.generate([prompt], concurrency=1)
    except RequestRefused as error:
        return str(error)
    return None


def _scored_part(
    prompt_token_ids: Sequence[int], token_ids: Sequence[int], max_model_len: int | None
) -> Sequence[int]:
    """An answer, without its last token where it fills the context window: what is scored becomes
    a prompt, and vLLM takes none that leaves no place for an answer."""
    end = None if max_model_len is None else max_model_len - 1 - len(prompt_token_ids)
    return token_ids[:end]
