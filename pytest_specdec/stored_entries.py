"""`--specdec-strict-baselines`: one test a profile, that some test asks for each stored workload.

    specdec.toml::smollm2-ngram::stored-entries

It needs no engine, and is selected and deselected as any other test is. Floor 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.profile_gate import ProfileGate
from pytest_specdec.report.properties import item_properties
from pytest_specdec.session import GateSession
from pytest_specdec.workload import Workload

NAME = "stored-entries"


def stored_entries(
    session: pytest.Session, collected: Mapping[str, Sequence[Workload]]
) -> list[StoredEntries]:
    """The session's tests of this kind; none where the gate cannot be had, which others tell.

    Args:
        collected: the workloads of all tests by profile, before any is deselected.
    """
    gate_session = GateSession.of(session.config)
    gates = gate_session.profile_gates()
    for name, workloads in collected.items():
        known = gate_session.asked_for.setdefault(name, {})
        for workload in workloads:
            known.setdefault(workload.name, workload)
    file = ProfilesFile.from_parent(session, path=gate_session.options.config_file, gates=gates)
    return [item for profile in file.collect() for item in profile.collect()]


class ProfilesFile(pytest.File):
    """`specdec.toml`, with a collector for each profile of the session."""

    def __init__(self, *, gates: Sequence[ProfileGate], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.gates = gates

    def collect(self) -> Iterator[ProfileEntries]:
        for gate in self.gates:
            yield ProfileEntries.from_parent(self, name=gate.profile.name, gate=gate)


class ProfileEntries(pytest.Collector):
    """What is stored for one profile."""

    def __init__(self, *, gate: ProfileGate, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.gate = gate

    def collect(self) -> Iterator[StoredEntries]:
        yield StoredEntries.from_parent(self, name=NAME)


class StoredEntries(pytest.Item):
    """Whether some test asks for each workload that is stored for a profile."""

    parent: ProfileEntries

    def runtest(self) -> None:
        session, gate = GateSession.of(self.config), self.parent.gate
        self.user_properties += item_properties(
            profile=gate.profile.name,
            workload=None,
            subject=(self.name, None),
            vllm_version=gate.pair.versions.get("vllm"),
        )
        unused = gate.stored_numbers.unused(session.asked_for.get(gate.profile.name, {}).keys())
        if not unused:
            return
        fact = f"stored, but no test asked for: {', '.join(f'`{name}`' for name in unused)}"
        if session.options.update is not None:
            pytest.skip(f"{fact}; an update keeps what it did not measure")
        hint = (
            "run the tests that use them (a partial selection leaves some out), or delete from "
            "`workloads` in the file what no test uses"
        )
        pytest.fail(f"{fact}\nfile: {gate.stored_numbers.file}\nhint: {hint}", pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.name} ({self.parent.name})"
