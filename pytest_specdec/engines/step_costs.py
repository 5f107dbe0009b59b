"""What steps cost, as a fact. Floor 1.

`step_costing` measures it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCosts:
    """Costs of steps in plain steps of the target, at one load.

    Attributes:
        draft_ratio: a step of the draft model alone; 0 for methods that draft without a model,
            `None` where it cannot be had.
        verification_ratio: a step of the target over as many tokens of each request as a draft has,
            and one more; `None` where that many do not fit the engine.
        notes: why one of them is `None`.
    """

    draft_ratio: float | None
    verification_ratio: float | None
    notes: tuple[str, ...] = ()
