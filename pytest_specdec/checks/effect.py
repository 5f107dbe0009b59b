"""Whether a field that is there to change an answer changes the baseline engine's: a prompt is
told from its twin, the same prompt without the field.

Floor 2: imports from the floors below and its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_specdec.checks.applied import CONSTRAINTS, ENDS, MASKS, PENALTIES, applied
from pytest_specdec.checks.finding import Finding, at_most
from pytest_specdec.generation import Generation
from pytest_specdec.workload import Prompt, Workload

# A constraint is not among them: it may ask for what the model writes anyway.
BENDING = {
    name: idle for name, idle in {**MASKS, **PENALTIES, **ENDS}.items() if name not in CONSTRAINTS
}
"""Fields that are there to change the answer."""


def without_effect(workload: Workload, generations: Iterable[Generation]) -> Finding | None:
    """The prompts whose field changes nothing in these answers, each with its twin."""
    token_ids = {each.prompt_id: each.token_ids for each in generations}
    facts = [
        f"`{prompt.id}` with {_fields(prompt)} has the tokens of `{twin.id}`, which has none of it"
        for prompt, twin in _twins(workload.asked)
        if prompt.id in token_ids and token_ids[prompt.id] == token_ids.get(twin.id)
    ]
    if not facts:
        return None
    return Finding(
        kind="no effect",
        prompt_id=None,
        facts=(
            *at_most(facts),
            "these are the baseline engine's answers: the field had nothing to change",
        ),
        hint="choose a value that changes the answer without speculation, or another prompt",
    )


def _twins(prompts: Iterable[Prompt]) -> Iterator[tuple[Prompt, Prompt]]:
    """Prompts with a bending field, each with the same prompt without any."""
    greedy = [prompt for prompt in prompts if prompt.is_greedy]
    plain = [prompt for prompt in greedy if not applied(prompt.request, BENDING)]
    for prompt in greedy:
        if applied(prompt.request, BENDING):
            rest = _unbent(prompt)
            yield from ((prompt, twin) for twin in plain if _unbent(twin) == rest)


def _unbent(prompt: Prompt) -> dict[str, object]:
    """What else decides the answer; how much is told of it does not."""
    return {k: v for k, v in prompt.request.items() if k not in BENDING and k != "logprobs"}


def _fields(prompt: Prompt) -> str:
    return ", ".join(f"`{name}`" for name in sorted(applied(prompt.request, BENDING)))
