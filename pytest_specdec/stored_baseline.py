"""Stored baselines: what one file under `baselines/` says, as facts, and JSON both ways.

One file holds one profile on one kind of hardware. Per-prompt counts are evidence beside the
figures; the figures are what the gate compares with, so a person may tighten one by hand. Floor 3;
reading and writing files is `baseline_store`'s work, changing them `baseline_update`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pytest_specdec.counters import DraftCounters
from pytest_specdec.generation import DraftsSource, counters_from_json
from pytest_specdec.measurement import PromptMeasurement

SCHEMA_VERSION = 2
NUM_DIGITS = 6
# On a log scale: what rounding may have added to a stored figure.
ROUNDING = 10.0**-NUM_DIGITS
UPDATE_OPTION = "--update-baselines"

Facts = Mapping[str, str | int | float | bool | None]


def rounded(value: float) -> float:
    """As stored. What is compared with a stored figure is rounded first, or 2/3 would be below
    the 0.666667 that it was stored as."""
    return round(value, NUM_DIGITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAcceptance:
    """What one pass of the speculative engine counted.

    Attributes:
        rate: accepted over draft tokens.
        drafts_per_output_token: falls when drafts fail to come, which the rate cannot show.
        tokens_per_step: output tokens over steps that gave one.
        estimator: how the rate was made of counts.
        drafts_source: who counted, each request or the engine.
        prompts: counts of each prompt, sorted by `id`.
    """

    rate: float
    mean_acceptance_length: float
    drafts_per_output_token: float
    tokens_per_step: float
    estimator: str
    drafts_source: DraftsSource
    prompts: tuple[PromptMeasurement, ...]

    @property
    def figures(self) -> tuple[float, float, float]:
        """What is gated: rate, mean acceptance length and tokens per step."""
        return self.rate, self.mean_acceptance_length, self.tokens_per_step


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLoad:
    """One engine start; loads are the independent replicates of a speedup.

    Attributes:
        log_ratios: one for each pair of passes.
    """

    log_ratios: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSpeedup:
    """The speedup, every load it was estimated from, and what it is made of (see `speedup`)."""

    value: float
    estimator: str
    loads: tuple[StoredLoad, ...]
    baseline_tokens_per_step: float
    speculative_tokens_per_step: float
    baseline_step_ms: float
    speculative_step_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the numbers come from. Data, not key: the upgrade is what is being tested.

    Attributes:
        versions: of `vllm`, `torch`, `python` and `driver`; `None` for what is not there.
        commit: of the project whose suites ran; `None` outside version control.
        date: of the recording, ISO 8601.
        num_loads: engine starts of each engine.
        num_passes: passes of each engine in one load.
        settings_digest: of the profile's engine settings.
    """

    versions: Mapping[str, str | None]
    commit: str | None
    date: str
    num_loads: int
    num_passes: int
    settings_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWorkload:
    """One workload's stored numbers.

    Attributes:
        digest: the workload's; unequal digests are other prompts, and no comparison.
        speedup: `None` where none could be had, such as with one pair of passes.
    """

    digest: str
    concurrency: int
    acceptance: StoredAcceptance
    speedup: StoredSpeedup | None
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBaseline:
    """One file.

    Attributes:
        hardware_key: the folder's name.
        hardware: the facts behind the key; numbers of other hardware are never compared.
        profile: the profile's name.
        workloads: by name.
    """

    hardware_key: str
    hardware: Facts
    profile: str
    workloads: Mapping[str, StoredWorkload]

    def hardware_differences(self, hardware_key: str, hardware: Facts) -> tuple[str, ...]:
        """How the hardware here differs from the file's, each as a sentence; empty when equal."""
        stored = {"hardware_key": self.hardware_key, **self.hardware}
        here = {"hardware_key": hardware_key, **hardware}
        return tuple(
            f"hardware `{key}`: {stored.get(key)} stored, {here.get(key)} here"
            for key in sorted(stored.keys() | here.keys())
            if stored.get(key) != here.get(key)
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            **asdict(self),
            "workloads": {
                name: _workload_to_json(workload) for name, workload in self.workloads.items()
            },
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StoredBaseline:
        """Of data that the schema accepted."""
        return cls(
            hardware_key=data["hardware_key"],
            hardware=data["hardware"],
            profile=data["profile"],
            workloads={
                name: _workload_from_json(workload) for name, workload in data["workloads"].items()
            },
        )


def _workload_to_json(workload: StoredWorkload) -> dict[str, Any]:
    data = asdict(workload)
    prompts = data["acceptance"]["prompts"]
    data["acceptance"]["prompts"] = {prompt.pop("id"): prompt for prompt in prompts}
    return data


def _workload_from_json(data: Mapping[str, Any]) -> StoredWorkload:
    acceptance, speedup = data["acceptance"], data["speedup"]
    prompts = tuple(_prompt_from_json(*item) for item in sorted(acceptance["prompts"].items()))
    return StoredWorkload(
        digest=data["digest"],
        concurrency=data["concurrency"],
        acceptance=StoredAcceptance(**{**acceptance, "prompts": prompts}),
        speedup=None if speedup is None else _speedup_from_json(speedup),
        provenance=Provenance(**data["provenance"]),
    )


def _prompt_from_json(prompt_id: str, data: Mapping[str, Any]) -> PromptMeasurement:
    drafts = data["drafts"]
    counted: DraftCounters | None = None if drafts is None else counters_from_json(drafts)
    return PromptMeasurement(**{**data, "id": prompt_id, "drafts": counted})


def _speedup_from_json(data: Mapping[str, Any]) -> StoredSpeedup:
    loads = tuple(StoredLoad(log_ratios=tuple(load["log_ratios"])) for load in data["loads"])
    return StoredSpeedup(**{**data, "loads": loads})
