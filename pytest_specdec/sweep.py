"""Points of a sweep: one workload at other loads, behind more context, at other temperatures.

Floor 0: imports nothing from the package.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Where in its sweep a workload is measured.

    Attributes:
        in_flight: requests in flight.
        context_tokens: about how many tokens of records stand before each question; `None` for a
            workload that has none.
        temperature: of all prompts; `None` where each has its own.
    """

    in_flight: int
    context_tokens: int | None = None
    temperature: float | None = None

    @property
    def name(self) -> str:
        """As it stands in a test's name: `in_flight=4,context_tokens=512`."""
        named = {
            "in_flight": self.in_flight,
            "context_tokens": self.context_tokens,
            "temperature": self.temperature,
        }
        return ",".join(f"{key}={value:g}" for key, value in named.items() if value is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What a workload's header asks for beside the workload as it is; an empty list asks nothing.

    Attributes:
        in_flight: requests in flight.
        context_tokens: about how many tokens of records stand before each question.
        temperature: of all prompts.
    """

    in_flight: tuple[int, ...] = ()
    context_tokens: tuple[int, ...] = ()
    temperature: tuple[float, ...] = ()

    @property
    def first_context(self) -> int | None:
        """That of the workload as it is; `None` for one whose prompts have no records."""
        return next(iter(self.context_tokens), None)

    def points(self, *, concurrency: int) -> tuple[Point, ...]:
        """Each of one list with each of the others, the load changing first.

        Args:
            concurrency: in flight where the sweep does not say.
        """
        return tuple(
            Point(in_flight=in_flight, context_tokens=context_tokens, temperature=temperature)
            for temperature, context_tokens, in_flight in product(
                self.temperature or (None,),
                self.context_tokens or (None,),
                self.in_flight or (concurrency,),
            )
        )
