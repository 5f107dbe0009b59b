"""What writes a session's recordings, one workload at a time, as each has been judged. Floor 5."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pytest_specdec import __version__
from pytest_specdec.engines.asked import Answers
from pytest_specdec.engines.protocol import Pair
from pytest_specdec.errors import RecordingError
from pytest_specdec.generation import RunPair
from pytest_specdec.hardware import Hardware
from pytest_specdec.profile import Profile
from pytest_specdec.recording import Header, Recording, profile_settings
from pytest_specdec.recording_file import write_recording
from pytest_specdec.stored_numbers import commit_of
from pytest_specdec.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """One profile's.

    Attributes:
        folder: of all recordings; this profile's are in a folder of its name.
    """

    folder: Path
    profile: Profile
    hardware: Hardware

    def check(self) -> None:
        """Refuses a folder that cannot be had, before an engine has worked for nothing.

        Raises:
            RecordingError: it cannot be made.
        """
        try:
            (self.folder / self.profile.name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RecordingError(
                f"no folder for recordings: {self.folder}: {error.strerror or error}",
                hint="name another one with `--specdec-record DIR`",
            ) from None

    def write(self, workload: Workload, runs: RunPair, answers: Answers, pair: Pair) -> None:
        """Records what was said to one workload.

        Raises:
            RecordingError: it cannot be written.
        """
        header = Header(
            pytest_specdec=__version__,
            recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
            commit=commit_of(self.profile.root),
            profile=profile_settings(self.profile),
            hardware=self.hardware,
            versions=pair.versions,
            engines=dict(pair.facts),
            num_starts=dict(pair.num_starts),
        )
        recording = Recording(header=header, workload=workload, runs=runs, answers=answers)
        write_recording(self.folder / self.profile.name, recording)
