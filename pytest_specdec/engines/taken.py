"""What has been taken of one workload so far, and the runs that come of it. Floor 1.

Facts alone; `loads` adds to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_specdec.conditions import Conditions
from pytest_specdec.generation import (
    ROLES,
    Pass,
    Refusal,
    Retake,
    Role,
    Run,
    RunPair,
    SampleScores,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What has been taken of one workload.

    Attributes:
        passes: in the order taken.
        num_loads: loads that are complete.
        conditions: what else went on, for each stretch of passes.
        again: by circumstance and role a pass, or why there is none.
        sample_scores: the sampled answers of the first passes, scored by the baseline engine.
        refusals: what became of the prompts that are to be refused.
    """

    passes: tuple[tuple[Role, Pass], ...] = ()
    num_loads: int = 0
    conditions: tuple[Conditions, ...] = ()
    again: Mapping[tuple[str, Role], Pass | str] = field(default_factory=dict)
    sample_scores: tuple[SampleScores, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    def of(self, role: Role) -> tuple[Pass, ...]:
        """One engine's passes."""
        return tuple(each for whose, each in self.passes if whose == role)

    def runs(self, workload_name: str) -> RunPair:
        """All of it, as it is judged."""
        baseline, speculative = (
            Run(role=role, workload=workload_name, passes=self.of(role)) for role in ROLES
        )
        return RunPair(
            baseline=baseline,
            speculative=speculative,
            order=tuple(role for role, _ in self.passes),
            num_loads=max(1, self.num_loads),
            conditions=self.conditions,
            retakes=self._retakes(),
            sample_scores=self.sample_scores,
            refusals=self.refusals,
        )

    def _retakes(self) -> tuple[Retake, ...]:
        """One for each circumstance."""
        return tuple(
            _retake(circumstance, [self.again[circumstance, role] for role in ROLES])
            for circumstance in dict.fromkeys(name for name, _ in self.again)
        )


def _retake(circumstance: str, taken: Sequence[Pass | str]) -> Retake:
    baseline, speculative = (each if isinstance(each, Pass) else None for each in taken)
    missing = next((each for each in taken if isinstance(each, str)), None)
    return Retake(
        circumstance=circumstance, baseline=baseline, speculative=speculative, missing=missing
    )
