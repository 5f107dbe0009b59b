"""A finding: a defect of one prompt's answers or of a whole workload's, with the evidence.

`str` of it is the failure text; `dataclasses.asdict` of it is its JSON form. Floor 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_specdec.generation import Role
from pytest_specdec.workload import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A defect.

    Attributes:
        kind: what it is, in a word or three, such as `truncated` or `divergence`; reports group by
            it.
        prompt_id: the prompt's `id` in its workload; `None` for a defect of the whole workload.
        facts: the evidence, one fact a line.
        hint: what to do next; `None` where there is nothing better than the facts.
        role: whose answer is at fault, where it is one.
        answer: that answer's text.
        position: the 0-based character of it where a validator stopped; `None` where it says none.
        pointer: the JSON pointer to the value at fault; empty for the root.
    """

    kind: str
    prompt_id: str | None
    facts: tuple[str, ...]
    hint: str | None = None
    role: Role | None = None
    answer: str | None = None
    position: int | None = None
    pointer: str | None = None

    def __str__(self) -> str:
        head = self.kind if self.prompt_id is None else f"{self.kind}: `{self.prompt_id}`"
        lines = [head, *(f"  {fact}" for fact in self.facts)]
        if self.hint is not None:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


def finding_on(
    kind: str,
    prompt: Prompt,
    *facts: str,
    hint: str | None = None,
    position: int | None = None,
    pointer: str | None = None,
) -> Finding:
    """A defect of an answer to this prompt."""
    return Finding(
        kind=kind, prompt_id=prompt.id, facts=facts, hint=hint, position=position, pointer=pointer
    )


def at_most(facts: Sequence[str], limit: int = 5) -> tuple[str, ...]:
    """The first facts, and how many more there are."""
    more = len(facts) - limit
    return (*facts[:limit], f"and {more} more") if more > 0 else tuple(facts)
