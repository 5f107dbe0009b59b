"""The gate's life within one pytest session: made on first use, started before the first test,
closed whatever happens. Floor 5.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pytest_specdec.benchmarks import NothingTimed, is_keeping
from pytest_specdec.errors import EngineUnavailable, ReportError, SpecdecError
from pytest_specdec.gate import Gate
from pytest_specdec.header import folder_lines, header_line, relative
from pytest_specdec.junit import record_suite_properties
from pytest_specdec.leases import check_shares
from pytest_specdec.options import Options
from pytest_specdec.own_tests import OwnTests
from pytest_specdec.point_answers import with_answers
from pytest_specdec.profile_gate import ProfileGate
from pytest_specdec.profile_report import ProfileResult, profile_result, told_from
from pytest_specdec.progress import TerminalWatch
from pytest_specdec.report.facts import ProfileReport
from pytest_specdec.report.json_file import report_data
from pytest_specdec.report.properties import suite_properties
from pytest_specdec.report.summary import summary_lines
from pytest_specdec.report_files import add_step_summary, remove_reports, write_reports
from pytest_specdec.workers import CONTROLLER, WORKER, Controller, Worker
from pytest_specdec.workload import Workload

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
        self._unwritten: str | None = None
        self._step_summary: str | None = None
        self.options = Options.from_pytest_config(config)
        self._is_begun = False
        self._first: str | None = None
        self._results: Sequence[ProfileResult] = ()
        self._worker: Worker | None = config.pluginmanager.get_plugin(WORKER)
        self._controller: Controller | None = config.pluginmanager.get_plugin(CONTROLLER)
        self._own_tests = OwnTests()
        config.pluginmanager.register(self._own_tests)

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
                self._gate = Gate(
                    self.options,
                    watch=self._worker or TerminalWatch(self._config),
                    share=0 if self._worker is None else self._worker.share,
                )
            except SpecdecError as error:
                self._error = error
                raise
        return self._gate

    def profile_gates(self) -> tuple[ProfileGate, ...]:
        """Those of the session; none when the gate could not be made, which `start` tells."""
        return tuple(each for each in self.measured_gates() if each.base_name is None)

    def measured_gates(self) -> tuple[ProfileGate, ...]:
        """Those of the session, and of their variants."""
        try:
            return tuple(self.gate.profiles.values())
        except SpecdecError:
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
        before the first test. A worker does not know yet which profile it will get.

        Args:
            planned: the workloads of the selected tests, by profile, in the tests' order.

        Raises:
            pytest.UsageError: the gate cannot be had.
        """
        try:
            gates = self._plan(planned)
            self._first = next(iter(planned))
            if self._worker is None:
                self.control()
                gates[0].pair.start()
            else:
                engines = [each.profile for each in gates if each.recorded is None]
                check_shares(engines, num_workers=self._worker.num_workers)
                self._worker.be_stopped()
                self._is_begun = True
        except EngineUnavailable as error:
            self._go_without_engines(error)
        except SpecdecError as error:
            self._end_with(error)

    def _plan(self, planned: Mapping[str, Sequence[Workload]]) -> list[ProfileGate]:
        if self.options.update and self.options.is_ci and not self.options.update_in_ci:
            raise SpecdecError(
                "`--update-baselines` in a CI environment would let a build accept its own "
                "regression",
                hint="add `--update-baselines-in-ci` where that is meant",
            )
        profiles = self.gate.profiles  # raises, where no profile could be planned for
        gates = [profiles[name] for name in planned]
        for gate in gates:
            for workload in planned[gate.profile.name]:
                self.asks_for(gate, workload)
            gate.pair.check_models()
            gate.plan(planned[gate.profile.name], num_profiles=len(planned))
        return gates

    def control(self) -> None:
        """Takes charge of what this session leaves behind; once."""
        if self._is_begun:
            return
        # An older session's reports must not be taken for those of this session.
        try:
            remove_reports(self.options.report_folder)
        except ReportError as error:
            self._end_with(error)
        self._is_begun = True
        self._old_handler = signal.signal(signal.SIGTERM, _exit_on_sigterm)
        if is_keeping(self._config):
            self._config.pluginmanager.register(NothingTimed())
        if self._controller is not None:
            for line in folder_lines(self.options, self._config.rootpath):
                self._controller.say(line)

    def _go_without_engines(self, error: EngineUnavailable) -> None:
        """An error of the whole session where somebody asked for a gate; else tests skip."""
        if self.options.is_explicit or self.options.is_strict:
            self._end_with(error)
        self._no_engines = error

    def _end_with(self, error: SpecdecError) -> None:
        """Ends the session with one error; where this is a worker, all of it."""
        if self._worker is None:
            raise pytest.UsageError(str(error)) from None
        self._worker.fail(str(error))

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
        """The named profile's share, its engines the only ones running."""
        gate = self.gate.profile(name)
        if self._worker is not None and gate.pair.failure is None:
            self._begin(gate, self._worker)
        return gate

    def _begin(self, gate: ProfileGate, worker: Worker) -> None:
        """Starts the engines of the profile that this worker has got, if they do not run."""
        is_new = not gate.pair.versions
        try:
            gate.pair.begin()
        except EngineUnavailable as error:
            self._go_without_engines(error)
            self.skip_without_engines()  # the session ends, or all tests skip
        except SpecdecError as error:
            # As without workers: what the first profile lacks is the session's error.
            if gate.profile.name == self._first:
                worker.fail(str(error))
            raise
        if is_new:
            worker.phase(header_line(gate, self._config.rootpath))

    def leave(self, name: str) -> None:
        """Ends a profile's engines when no test here needs them any more."""
        if self._gate is not None:
            self._gate.profiles[name].pair.close()

    def header(self) -> list[str]:
        """What is gated, with what, on what."""
        lines = [header_line(each, self._config.rootpath) for each in self.profile_gates()]
        folders = folder_lines(self.options, self._config.rootpath) if lines else ()
        return [f"specdec: {line}" for line in (*lines, *folders)]

    def finish(self, *, is_complete: bool) -> bool:
        """Ends the engines, stores numbers where that is asked for, and writes the reports.

        Args:
            is_complete: whether the session ran to its end; only then are numbers stored.

        Returns:
            Whether all is stored that was to be stored, and all reports are written.
        """
        if not self._is_begun:
            return True
        is_update = self.options.update is not None and is_complete
        if self._controller is not None and not is_complete:
            self._controller.stop()
        self._results = self._made(is_update=is_update)
        if self._worker is not None:
            self._worker.finish(self._results)
        if self._worker is not None or not self._results:
            return True  # where no worker came to its end, none of them has told what it ran
        self.reports = tuple(
            told_from(
                replace(
                    self._reported(each, is_complete=is_complete),
                    own_tests=self._own_tests.of(each.report.profile.name),
                ),
                self._config.rootpath,
            )
            for each in with_answers(self._results)
        )
        data = report_data(self.reports)
        try:
            self._report_paths = write_reports(data, self.options.report_folder)
        except ReportError as error:
            self._unwritten = str(error)
        self._step_summary = add_step_summary(data)
        record_suite_properties(self._config, suite_properties(self.reports))
        is_refused = any(each.update and each.update.refused for each in self.reports)
        return not is_refused and self._unwritten is None

    def _reported(self, result: ProfileResult, *, is_complete: bool) -> ProfileReport:
        if self.options.update is None:
            return result.report
        return result.stored() if is_complete else result.broken_off()

    def _made(self, *, is_update: bool) -> Sequence[ProfileResult]:
        """What this session ran, or what its workers did."""
        if self._controller is not None:
            return self._controller.results
        self.gate.close()
        return [
            profile_result(
                each, asked_for=self.asked_for.get(each.profile.name, {}), is_update=is_update
            )
            for each in self.measured_gates()
        ]

    def summary(self) -> Iterator[str]:
        """The lines of the terminal's summary section; none when nothing ran."""
        for report in self.reports:
            lines = summary_lines(report)
            if len(self.reports) > 1 and lines:
                yield f"profile {report.profile.name}"
            yield from lines
        yield from self._unanswered()
        if self._unwritten is not None:
            yield self._unwritten
        elif any(each.workloads or each.own_tests or each.worth_it for each in self.reports):
            paths = (relative(each, self._config.rootpath) for each in self._report_paths)
            yield f"report: {', '.join(paths)}"
        if self._step_summary is not None:
            yield self._step_summary

    def _unanswered(self) -> Iterator[str]:
        """What the checks would have asked an engine, and its recording does not know."""
        for result in self._results:
            for name, count in result.unanswered.items():
                yield f"{name}: questions about differing answers not in the recording: {count}"

    def close(self) -> None:
        """Ends what is left, in whatever way the session ended."""
        if self._gate is not None:
            self._gate.close()
        if self._old_handler is not None:
            signal.signal(signal.SIGTERM, self._old_handler)
            self._old_handler = None


KEY = pytest.StashKey[GateSession]()


def _exit_on_sigterm(_signum: int, _frame: FrameType | None) -> None:
    """Ends the session as Ctrl-C would, so that the engines are ended too."""
    pytest.exit("terminated by SIGTERM", returncode=SIGTERM_EXIT_STATUS)
