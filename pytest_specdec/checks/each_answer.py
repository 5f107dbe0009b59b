"""Of the answers that `n` asks for, what holds of one must hold of each. Floor 2: imports from the
floors below and its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pytest_specdec.checks.finding import Finding
from pytest_specdec.generation import Generation


def in_any_answer(
    generation: Generation, check: Callable[[Generation], Finding | None]
) -> Finding | None:
    """What `check` finds in the first answer that it finds anything in; which of several that is
    comes before the other facts."""
    answers = generation.answers
    for number, answer in enumerate(answers, start=1):
        found = check(answer)
        if found is not None:
            which = (f"answer {number} of {len(answers)}",) if len(answers) > 1 else ()
            return replace(found, facts=(*which, *found.facts))
    return None
