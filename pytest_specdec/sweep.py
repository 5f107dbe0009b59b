"""Points of a sweep: one workload at other loads, behind more context, at other temperatures.

Floor 0: imports nothing from the package.
"""

from __future__ import annotations

from dataclasses import dataclass


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
