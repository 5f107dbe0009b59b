"""One profile's stored numbers on this hardware: which there are, and which a session writes.

Floor 5.
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pytest_specdec.baseline_store import BaselineStore
from pytest_specdec.baseline_update import diff_rows, merged, unused
from pytest_specdec.errors import StoredBaselineError
from pytest_specdec.generation import RunPair
from pytest_specdec.hardware import Hardware
from pytest_specdec.options import Options
from pytest_specdec.profile import Profile
from pytest_specdec.recording import Header
from pytest_specdec.report.facts import Update
from pytest_specdec.stored_baseline import Provenance, StoredBaseline, StoredWorkload
from pytest_specdec.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredNumbers:
    """One profile's stored baseline, before and after the session.

    Attributes:
        stored: what the file held when the session began; `None` where there is none.
    """

    profile: Profile
    hardware: Hardware
    stored: StoredBaseline | None
    options: Options

    @property
    def file(self) -> Path:
        """Where the stored baseline is, or would be."""
        return self._store.path(self.hardware.key, self.profile.name)

    @property
    def hardware_keys(self) -> tuple[str, ...]:
        """The kinds of hardware that the profile has a stored baseline for."""
        return self._store.hardware_keys(self.profile.name)

    @property
    def hardware_differences(self) -> tuple[str, ...]:
        """How the stored file's hardware differs from what is here."""
        if self.stored is None:
            return ()
        return self.stored.hardware_differences(self.hardware.key, self.hardware.facts)

    def workload(self, workload: Workload) -> StoredWorkload | None:
        """The workload's stored numbers, if there are any."""
        return None if self.stored is None else self.stored.workloads.get(workload.name)

    def unused(self, asked_for: Collection[str]) -> tuple[str, ...]:
        """Names of stored workloads that are not among those asked for."""
        return () if self.stored is None else unused(self.stored, asked_for)

    def is_stored_now(self, workload: Workload) -> bool:
        """Whether its numbers are to become the stored ones."""
        if not workload.gated:
            return False  # nothing of it is timed
        mode = self.options.update
        return mode == "all" or (mode == "new" and self.workload(workload) is None)

    def provenance(
        self,
        versions: Mapping[str, str | None],
        runs: RunPair,
        *,
        recorded: Header | None = None,
    ) -> Provenance:
        """Where the numbers of these runs are from.

        Args:
            recorded: what the recording is of that they were read from, if they were.
        """
        folder = self.options.config_file.parent
        return Provenance(
            versions=versions,
            commit=recorded.commit if recorded else commit_of(folder),
            date=recorded.date if recorded else datetime.now(UTC).date().isoformat(),
            num_loads=runs.num_loads,
            num_passes=runs.passes_per_load,
            settings_digest=self.profile.digest,
        )

    def write(
        self,
        accepted: Mapping[str, StoredWorkload],
        *,
        refused: Mapping[str, Sequence[str]],
    ) -> Update:
        """Writes numbers to the file, as the options' mode says.

        Args:
            accepted: by workload, the numbers.
            refused: why others are not written, by workload.
        """
        mode = self.options.update
        if not accepted or mode is None:
            return Update(path=None, rows=(), refused=refused)
        new = StoredBaseline(
            hardware_key=self.hardware.key,
            hardware=self.hardware.facts,
            profile=self.profile.name,
            workloads=accepted,
        )
        both = merged(self.stored, new, mode=mode)
        try:
            path = self._store.save(both)
        except StoredBaselineError as error:
            unwritten = dict.fromkeys(accepted, (str(error).partition("\n")[0],))
            return Update(path=None, rows=(), refused={**refused, **unwritten})
        return Update(path=str(path), rows=diff_rows(self.stored, both), refused=refused)

    @property
    def _store(self) -> BaselineStore:
        return BaselineStore(self.options.baselines_folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What one profile's session would store, whoever writes it.

    Attributes:
        accepted: by workload, the numbers.
        refused: why others are not to be written, by workload.
    """

    numbers: StoredNumbers
    accepted: Mapping[str, StoredWorkload]
    refused: Mapping[str, Sequence[str]]

    def write(self) -> Update:
        """Writes the numbers to the stored baseline, as far as they may be."""
        return self.numbers.write(self.accepted, refused=self.refused)


def commit_of(folder: Path) -> str | None:
    """The commit of the project whose suites ran; `None` outside version control."""
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
