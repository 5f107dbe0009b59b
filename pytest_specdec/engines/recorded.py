"""A pair of engines as it was recorded: judged again without an engine, vLLM or the hardware.

The same face as `EnginePair`. What was not recorded is an error that says so, and never an answer.
Floor 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn, TypeVar

from pytest_specdec.engines.asked import Answers
from pytest_specdec.engines.protocol import EngineFacts, IsDecided
from pytest_specdec.errors import EngineError, NotRecorded, RecordingError, SpecdecError
from pytest_specdec.generation import ROLES, Pass, Role, RunPair, TokenScore
from pytest_specdec.hardware import Hardware
from pytest_specdec.profile import Profile
from pytest_specdec.recording import (
    Header,
    Recording,
    differences,
    profile_settings,
    told_settings,
)
from pytest_specdec.recording_file import read_header, read_recording, recorded_files
from pytest_specdec.workload import Prompt, Workload

T = TypeVar("T")
RECORD = "record it with `--specdec-record`"


class RecordedPair:
    """What both engines of a profile said.

    Args:
        profile: as it is now.
        folder: of recordings, those of this profile in a folder of its name.

    Raises:
        RecordingError: the profile is not recorded there, with other engine settings, or in parts
            that do not belong together.
    """

    failure: SpecdecError | None = None

    def __init__(self, profile: Profile, folder: Path) -> None:
        self.profile = profile
        self.num_starts: Mapping[Role, int] = dict.fromkeys(ROLES, 0)
        self.facts: Mapping[Role, EngineFacts] = {}
        self.unanswered: Counter[str] = Counter()
        self._folder = folder
        self._files = recorded_files(folder / profile.name)
        if not self._files:
            raise _no_profile(profile, folder)
        headers = {path: read_header(path) for path in self._files.values()}
        for path, header in headers.items():
            _check_settings(profile, header, path)
        self._header = _common(headers)
        self._recordings: dict[Path, Recording] = {}

    @property
    def hardware(self) -> Hardware:
        """What the engines ran on."""
        return self._header.hardware

    @property
    def versions(self) -> Mapping[str, str | None]:
        """Those of then."""
        return self._header.versions

    def header(self, workload: Workload) -> Header:
        """What the recording of a workload is of."""
        return self._recording(workload).header

    def left_out(self, workload: Workload) -> tuple[str, ...]:
        """Why a recording is no measure for later ones: numbers to be stored have all passes."""
        recording = self._recording(workload)
        if recording.header.is_whole(recording.runs):
            return ()
        return (
            "the recording was stopped when its verdict was sure; record with `--update-baselines` "
            "beside `--specdec-record`, which takes all passes",
        )

    def plan(self, workloads: Iterable[Workload], *, is_decided: IsDecided | None = None) -> None:
        """Nothing is to be planned: all recorded passes are read."""

    def check_models(self) -> None:
        """No model is needed."""

    def start(self) -> None:
        """Nothing is to be started."""

    def begin(self) -> None:
        """Likewise."""

    def close(self) -> None:
        """Nothing is to be ended."""

    def cost(self) -> None:
        """What the engines took is not recorded."""

    def step_costs(self, workload: Workload) -> None:
        """Likewise."""

    def engine(self, role: Role) -> NoReturn:
        """There is none.

        Raises:
            EngineError: always.
        """
        raise EngineError(
            f"the {role} engine does not run: this session judges recordings: {self._folder}",
            hint="run tests that ask an engine themselves without `--specdec-replay`, or leave "
            "them out with `-k` or `--deselect`",
        )

    def run(self, workload: Workload) -> RunPair:
        """What both engines said to a workload, if it is what they were asked.

        Raises:
            RecordingError: it was not recorded, or asks something else now.
        """
        recording = self._recording(workload)
        self.facts = recording.header.engines
        retakes = recording.runs.retakes
        return replace(
            recording.runs,
            retakes=tuple(each for each in retakes if each.circumstance in workload.again),
        )

    def control(self, workload: Workload, prompts: Sequence[Prompt], *, concurrency: int) -> Pass:
        """What the baseline engine said when it was asked again.

        Raises:
            NotRecorded: it was not asked.
            EngineError: it did not answer.
        """
        question = tuple(prompt.id for prompt in prompts), concurrency
        said = self._answers(workload).controls.get(question)
        what = f"a control run of {len(prompts)} prompts, {concurrency} in flight"
        return self._told(workload, said, what)

    def score(
        self, workload: Workload, prompt_token_ids: Sequence[int], token_ids: Sequence[int]
    ) -> tuple[TokenScore, ...]:
        """The baseline engine's scores, as when it was asked.

        Raises:
            NotRecorded: it was not asked.
            EngineError: it did not answer.
        """
        said = self._answers(workload).scores.get((tuple(prompt_token_ids), tuple(token_ids)))
        return self._told(workload, said, f"the scores of {len(token_ids)} tokens")

    def _told(self, workload: Workload, said: T | str | None, what: str) -> T:
        if said is None:
            self.unanswered[workload.name] += 1
            raise NotRecorded(what)
        if isinstance(said, str):
            raise EngineError(said)
        return said

    def _answers(self, workload: Workload) -> Answers:
        return self._recording(workload).answers

    def _recording(self, workload: Workload) -> Recording:
        if workload.path not in self._recordings:
            self._recordings[workload.path] = self._read(workload)
        return self._recordings[workload.path]

    def _read(self, workload: Workload) -> Recording:
        if (path := self._files.get(workload.name)) is None:
            folder = self._folder / self.profile.name
            raise RecordingError(
                f"workload `{workload.name}` was not recorded in: {folder}",
                hint=f"{RECORD}; recorded there: {_names(self._files)}",
            )
        recording = read_recording(path)
        if facts := [*differences(recording.workload, workload)]:
            raise RecordingError(
                "\n".join(
                    (f"recording `{path}` is not of what `{workload.name}` asks now", *facts)
                ),
                hint=f"{RECORD} again, or restore the workload as it was",
            )
        return recording


def _no_profile(profile: Profile, folder: Path) -> RecordingError:
    if not folder.is_dir():
        return RecordingError(f"no folder of recordings: {folder}", hint=RECORD)
    others = sorted(each.name for each in folder.iterdir() if recorded_files(each))
    hint = RECORD
    if others:
        hint = f"choose one with `--specdec-profile`; recorded there: {_names(others)}"
    return RecordingError(f"profile `{profile.name}` was not recorded in: {folder}", hint=hint)


def _common(headers: Mapping[Path, Header]) -> Header:
    """That of the first file, which the others must agree with."""
    (first, header), *others = headers.items()
    for path, other in others:
        for key in ("hardware", "versions"):
            if getattr(other, key) != getattr(header, key):
                raise RecordingError(
                    f"recordings of one profile were made with different `{key}`: `{first}` and "
                    f"`{path}`",
                    hint="record each session into a folder of its own",
                )
    return header


def _check_settings(profile: Profile, header: Header, path: Path) -> None:
    was, now = told_settings(header.profile), told_settings(profile_settings(profile))
    changed = [key for key in now if now[key] != was[key]]
    if changed:
        raise RecordingError(
            f"recording `{path}` was made with other settings of profile `{profile.name}`: "
            f"{_names(changed)}",
            hint=f"{RECORD} again, or restore the settings as they were; tolerances and known "
            "defects may change",
        )


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
