"""The gate's life within one pytest session: made on first use, started before the first test,
closed whatever happens. Floor 5.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pytest_specdec.errors import EngineError, EngineUnavailable, SpecdecError
from pytest_specdec.gate import Gate
from pytest_specdec.junit import record_suite_properties
from pytest_specdec.options import Options
from pytest_specdec.profile_gate import ProfileGate
from pytest_specdec.profile_report import profile_report
from pytest_specdec.progress import TerminalWatch
from pytest_specdec.report.facts import ProfileReport
from pytest_specdec.report.json_file import report_data
from pytest_specdec.report.properties import suite_properties
from pytest_specdec.report.summary import summary_lines
from pytest_specdec.report_files import add_step_summary, remove_reports, write_reports
from pytest_specdec.workload import Workload, read_workload

SIGTERM_EXIT_STATUS = 128 + signal.SIGTERM


class GateSession:
    """One pytest session's gate.

    An error in the configuration is kept and raised once, when collection is over, however many
    workloads ran into it.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._gate: Gate | None = None
        self._error: SpecdecError | None = None
        self._no_engines: EngineUnavailable | None = None
        self._old_handler: Any = None
        self.asked_for: dict[str, dict[str, Workload]] = {}
        self.reports: tuple[ProfileReport, ...] = ()
        self._report_paths: tuple[Path, ...] = ()
        self._step_summary: str | None = None
        self.options = Options.from_pytest_config(config)
        # Each worker of pytest-xdist is a session of its own, and would start engines of its own.
        self._is_xdist_worker = hasattr(config, "workerinput")

    @classmethod
    def of(cls, config: pytest.Config) -> GateSession:
        """The session's own, made on first use."""
        if (session := config.stash.get(KEY, None)) is None:
            session = config.stash[KEY] = cls(config)
        return session

    @property
    def gate(self) -> Gate:
        """The gate.

        Raises:
            SpecdecError: what is wrong with the configuration, the hardware or a stored baseline.
        """
        if self._error is not None:
            raise self._error
        if self._gate is None:
            try:
                self._gate = Gate(self.options, watch=TerminalWatch(self._config))
            except SpecdecError as error:
                self._error = error
                raise
        return self._gate

    def profile_gates(self) -> tuple[ProfileGate, ...]:
        """Those of the session; none when the gate could not be made, which `start` tells.

        Raises:
            SpecdecError: the gate could not be made, and nothing is started here to tell it.
        """
        try:
            return tuple(self.gate.profiles.values())
        except SpecdecError:
            if self._is_xdist_worker:
                raise
            return ()

    def asks_for(self, gate: ProfileGate, workload: Workload) -> None:
        """Notes that some test may ask for this workload.

        Raises:
            SpecdecError: another file has the same name, which is its key in stored baselines.
        """
        known = self.asked_for.setdefault(gate.profile.name, {})
        other = known.setdefault(workload.name, workload)
        if other.path != workload.path:
            raise SpecdecError(
                f"two workloads are named `{workload.name}`: {other.path} and {workload.path}",
                hint="rename one; the name is its key in stored baselines",
            )

    def start(self, planned: Mapping[str, Sequence[Workload]]) -> None:
        """Starts the first profile's engines' processes, so that what is missing is one error
        before the first test.

        Args:
            planned: the workloads of the selected tests, by profile, in the tests' order.

        Raises:
            pytest.UsageError: the gate cannot be had.
        """
        if self._is_xdist_worker:
            return  # `profile` refuses every test
        if self.options.update and self.options.is_ci and not self.options.update_in_ci:
            raise pytest.UsageError(
                "`--update-baselines` in a CI environment would let a build accept its own "
                "regression\nhint: add `--update-baselines-in-ci` where that is meant"
            )
        try:
            profiles = self.gate.profiles  # raises, where no profile could be planned for
            gates = [profiles[name] for name in planned]
            for gate in gates:
                for workload in planned[gate.profile.name]:
                    self.asks_for(gate, workload)
                gate.pair.check_models()
                gate.plan(planned[gate.profile.name], num_profiles=len(planned))
            self._old_handler = signal.signal(signal.SIGTERM, _exit_on_sigterm)
            # An older session's reports must not be taken for those of this session.
            remove_reports(self.options.report_folder)
            gates[0].pair.start()
        except EngineUnavailable as error:
            if self.options.is_explicit or self.options.is_strict:
                raise pytest.UsageError(str(error)) from None
            self._no_engines = error
        except SpecdecError as error:
            raise pytest.UsageError(str(error)) from None

    def check(self) -> None:
        """Makes the gate because an option asks for it, before anything is collected.

        Raises:
            pytest.UsageError: it cannot be had.
        """
        try:
            self.gate  # noqa: B018  # made on first use
        except SpecdecError as error:
            raise pytest.UsageError(str(error)) from None

    def skip_without_engines(self) -> None:
        """Skips the test where nobody asked for a gate and there is no vLLM."""
        if self._no_engines is not None:
            pytest.skip(str(self._no_engines))

    def profile(self, name: str) -> ProfileGate:
        """The named profile's share, its engines the only ones running.

        Raises:
            EngineError: this is a worker of pytest-xdist.
        """
        if self._is_xdist_worker:
            raise EngineError(
                "engines cannot be shared between the workers of pytest-xdist yet",
                hint="run the suites without `-n`",
            )
        return self.gate.profile(name)

    def header(self) -> list[str]:
        """What is gated, with what, on what; a worker of pytest-xdist has nobody to tell."""
        if self._is_xdist_worker:
            return []
        lines = []
        for each in self.profile_gates():
            versions = each.pair.versions
            engine = f"vLLM {versions['vllm']}, torch {versions['torch']}" if versions else "vLLM -"
            folder = self.options.baselines_folder / each.hardware.key
            lines.append(
                f"specdec: profile {each.profile.name}; {engine}; {each.hardware}; stored "
                f"baselines: {_relative(folder, self._config)}"
                + ("" if each.stored else f" ({_elsewhere(each)})")
            )
        for verb, path in (
            ("recorded to", self.options.record_folder),
            ("replayed from", self.options.replay_folder),
        ):
            if path is not None and lines:
                lines.append(f"specdec: {verb}: {_relative(path, self._config)}")
        return lines

    def finish(self, *, is_complete: bool) -> bool:
        """Ends the engines, stores numbers where that is asked for, and writes the reports.

        Args:
            is_complete: whether the session ran to its end; only then are numbers stored.

        Returns:
            Whether all is stored that was to be stored.
        """
        if self._gate is None or self._old_handler is None:
            return True
        self._gate.close()
        is_update = self.options.update is not None and is_complete
        self.reports = tuple(
            profile_report(
                each,
                asked_for=self.asked_for.get(each.profile.name, {}),
                update=each.update() if is_update else None,
            )
            for each in self.profile_gates()
        )
        data = report_data(self.reports)
        self._report_paths = write_reports(data, self.options.report_folder)
        self._step_summary = add_step_summary(data)
        record_suite_properties(self._config, suite_properties(self.reports))
        return not any(each.update and each.update.refused for each in self.reports)

    def summary(self) -> Iterator[str]:
        """The lines of the terminal's summary section; none when nothing ran."""
        for report in self.reports:
            lines = summary_lines(report)
            if len(self.reports) > 1 and lines:
                yield f"profile {report.profile.name}"
            yield from lines
        yield from self._unanswered()
        if any(report.workloads for report in self.reports):
            paths = (_relative(each, self._config) for each in self._report_paths)
            yield f"report: {', '.join(paths)}"
            if self._step_summary is not None:
                yield self._step_summary

    def _unanswered(self) -> Iterator[str]:
        """What the checks would have asked an engine, and its recording does not know."""
        for recorded in (each.recorded for each in self.profile_gates()):
            for name, count in recorded.unanswered.items() if recorded else ():
                yield f"{name}: questions about differing answers not in the recording: {count}"

    def close(self) -> None:
        """Ends what is left, in whatever way the session ended."""
        if self._gate is not None:
            self._gate.close()
        if self._old_handler is not None:
            signal.signal(signal.SIGTERM, self._old_handler)
            self._old_handler = None


KEY = pytest.StashKey[GateSession]()


def marked_workload(item: pytest.Item) -> Workload:
    """The workload that a test's `specdec` marker names.

    Raises:
        SpecdecError: there is no such marker, or the file cannot be read.
    """
    marker = item.get_closest_marker("specdec")
    if marker is None or len(marker.args) != 1:
        raise SpecdecError(
            f"`{item.name}` uses the `workload` fixture but names no workload",
            hint='mark it: @pytest.mark.specdec("prompts.jsonl")',
        )
    return read_workload(item.path.parent / marker.args[0])


def planned_workload(item: pytest.Item) -> Workload | None:
    """The workload an item will ask for, as far as that can be known before it runs."""
    if (own := getattr(item, "workload", None)) is not None:
        return own if isinstance(own, Workload) else None
    try:
        return marked_workload(item)
    except SpecdecError:
        return None


def _elsewhere(gate: ProfileGate) -> str:
    """What is stored for a profile that has nothing stored on this hardware."""
    others = gate.stored_numbers.hardware_keys
    return "none for this profile" + (f"; there are for: {', '.join(others)}" if others else "")


def _exit_on_sigterm(_signum: int, _frame: FrameType | None) -> None:
    """Ends the session as Ctrl-C would, so that the engines are ended too."""
    pytest.exit("terminated by SIGTERM", returncode=SIGTERM_EXIT_STATUS)


def _relative(path: Path, config: pytest.Config) -> str:
    return str(path.relative_to(config.rootpath) if path.is_relative_to(config.rootpath) else path)
