"""What every engine can do, whatever runs it. Floor 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_specdec.generation import Pass, Role, TokenScore
from pytest_specdec.workload import Prompt

Progress = Callable[[Mapping[str, int]], None]
"""Told `num_finished` requests and `num_output_tokens` while an engine generates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """What a loaded engine is.

    Attributes:
        versions: of `vllm`, `torch`, `python`, `cuda` and the GPU `driver`; `None` where absent.
        load_s: seconds from the engine's arguments to a loaded engine.
        config: what vLLM made of its arguments, by dotted name.
    """

    versions: Mapping[str, str | None]
    load_s: float
    config: Mapping[str, Any]


class Watch(Protocol):
    """Told what the engines do, for people who wait."""

    def phase(self, text: str) -> None:
        """Something new begins."""
        ...

    def progress(self, text: str) -> None:
        """How far the phase has come; several times a second at most."""
        ...


class Engine(Protocol):
    """A loaded engine. Every method raises an EngineError that names the cause."""

    @property
    def role(self) -> Role: ...

    @property
    def facts(self) -> EngineFacts: ...

    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        concurrency: int,
        circumstance: str | None = None,
        progress: Progress | None = None,
    ) -> Pass:
        """Answers all prompts in a closed loop, exactly `concurrency` in flight.

        Args:
            circumstance: one of `workload.CIRCUMSTANCES`; raises CircumstanceUnsupported where the
                engine cannot be brought there.
        """
        ...

    def score(
        self, prompt_token_ids: Sequence[int], token_ids: Sequence[int]
    ) -> tuple[TokenScore, ...]:
        """Each of `token_ids` under this engine's own distribution, without sampling masks."""
        ...

    def close(self) -> None:
        """Ends the engine and all it started. May be called again."""
        ...
