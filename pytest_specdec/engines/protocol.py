"""What every engine, and every pair of them, can do, whatever runs it. Floor 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_specdec.engines.cost import Cost
from pytest_specdec.engines.step_costs import StepCosts
from pytest_specdec.errors import SpecdecError
from pytest_specdec.generation import Pass, Role, RunPair, TokenScore
from pytest_specdec.workload import Prompt, Workload

Progress = Callable[[Mapping[str, int]], None]
"""Told `num_finished` requests and `num_output_tokens` while an engine generates."""
IsDecided = Callable[[Workload, RunPair], bool]
"""Whether a workload's passes so far are enough."""


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


class Pair(Protocol):
    """Both engines of a profile, or what they once said: `EnginePair`, or `RecordedPair`."""

    @property
    def versions(self) -> Mapping[str, str | None]:
        """Of vLLM and what is under it, by the speculative engine's interpreter; `baseline_vllm`
        where the other one has its own. Empty before they are known."""
        ...

    @property
    def facts(self) -> Mapping[Role, EngineFacts]:
        """What each loaded engine is."""
        ...

    @property
    def num_starts(self) -> Mapping[Role, int]:
        """Engine starts in this session."""
        ...

    @property
    def failure(self) -> SpecdecError | None:
        """What ended the engines before their time, if anything did."""
        ...

    def plan(self, workloads: Iterable[Workload], *, is_decided: IsDecided | None = None) -> None:
        """Names the workloads that will be asked for, and who says when passes are enough."""
        ...

    def check_models(self) -> None:
        """Refuses what is missing, without starting anything."""
        ...

    def start(self) -> None:
        """Starts what takes long to start. Cheap to call again."""
        ...

    def begin(self) -> None:
        """As `start`; what it raises is a failure of the pair."""
        ...

    def engine(self, role: Role) -> Engine:
        """The loaded engine of that role."""
        ...

    def run(self, workload: Workload) -> RunPair:
        """Both engines' runs over a workload; taken once."""
        ...

    def control(self, workload: Workload, prompts: Sequence[Prompt], *, concurrency: int) -> Pass:
        """The baseline engine's answers once more, in a batch of another kind."""
        ...

    def score(
        self, workload: Workload, prompt_token_ids: Sequence[int], token_ids: Sequence[int]
    ) -> tuple[TokenScore, ...]:
        """Tokens of an answer under the baseline engine's own distribution."""
        ...

    def cost(self) -> Cost | None:
        """What both engines took so far; `None` before they are loaded, and for a recording."""
        ...

    def step_costs(self, workload: Workload) -> StepCosts | None:
        """What steps of drafting and verifying cost under a workload's load; measured once, and
        `None` where that cannot be. The speculative engine may be ended for it."""
        ...

    def close(self) -> None:
        """Ends both engines and all they started."""
        ...
