"""Recordings: what a profile's engines said to one workload, and whether it is what is asked now.

Facts; `recording_lines` has them as JSON, `recording_file` in files. Floor 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pytest_specdec.engines.asked import Answers
from pytest_specdec.engines.protocol import EngineFacts
from pytest_specdec.generation import Role, RunPair
from pytest_specdec.hardware import Hardware
from pytest_specdec.profile import Profile
from pytest_specdec.workload import Workload

TOLD = ("device", "model", "engine_args", "speculative_config", "env")
"""Settings of a profile that engines are told; most others say how they are judged."""
BASELINE_TOLD = "baseline.speculative_config"
"""What the baseline engine alone is told, where it speculates."""
PASSES_PER_BLOCK = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a recording is of, beside the workload.

    Attributes:
        pytest_specdec: the version of this package that wrote it.
        recorded_at: date and time, ISO 8601.
        commit: of the project whose suites ran; `None` outside version control.
        profile: its settings, as JSON has them.
        hardware: what the engines ran on.
        versions: of vLLM and what is under it.
        engines: what each loaded engine was.
        num_starts: engine starts up to there.
    """

    pytest_specdec: str
    recorded_at: str
    commit: str | None
    profile: Mapping[str, Any]
    hardware: Hardware
    versions: Mapping[str, str | None]
    engines: Mapping[Role, EngineFacts]
    num_starts: Mapping[Role, int]

    @property
    def date(self) -> str:
        """The day of the recording."""
        return self.recorded_at.partition("T")[0]

    def is_whole(self, runs: RunPair) -> bool:
        """Whether all passes were taken that the profile allowed, none left out as not needed."""
        num_passes = PASSES_PER_BLOCK * self.profile["num_blocks"]
        return (runs.num_loads, runs.passes_per_load) == (self.profile["num_loads"], num_passes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One file.

    Attributes:
        workload: as it was sent; what its answers are held to is not recorded.
        answers: what the baseline engine said when it was asked afterwards.
    """

    header: Header
    workload: Workload
    runs: RunPair
    answers: Answers


def profile_settings(profile: Profile) -> Mapping[str, Any]:
    """A profile as JSON has it, without the folder that its file is in."""
    data = {key: value for key, value in asdict(profile).items() if key != "root"}
    settings: Mapping[str, Any] = json.loads(json.dumps(data, default=str))
    return settings


def told_settings(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the engines of a profile are told, of its settings as JSON has them. No interpreter is
    among that: its versions are data, and recordings are judged where it is not."""
    own = (settings.get("baseline") or {}).get("speculative_config")
    return {**{key: settings.get(key) for key in TOLD}, BASELINE_TOLD: own}


def differences(recorded: Workload, now: Workload) -> Iterator[str]:
    """What a workload asks of the engines now that they were not asked then."""
    if recorded.concurrency != now.concurrency:
        yield f"`concurrency` was {recorded.concurrency} and is {now.concurrency}"
    was, sent = _sent(recorded), _sent(now)
    changed = [name for name in {**was, **sent} if was.get(name) != sent.get(name)]
    if changed:
        yield f"prompts were changed, added or taken out: {', '.join(changed)}"
    elif [*was] != [*sent]:
        yield "its prompts stand in another order"
    if new := [each for each in now.again if each not in recorded.again]:
        yield f"`again` names what was not tried: {', '.join(new)}"
    if now.gated and not recorded.gated:
        yield f"`gated` names {', '.join(now.gated)}, and nothing was timed"


def _sent(workload: Workload) -> dict[str, str]:
    return {
        prompt.id: json.dumps([prompt.request, prompt.is_refused], sort_keys=True)
        for prompt in workload.prompts
    }
