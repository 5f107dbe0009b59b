"""pytest-xdist: what its workers tell the process that controls them, and what that makes of it.

Each worker has a channel of its own, past pytest-xdist's: over it go the profiles that tests need,
what the engines do, and what keeps them from starting; and back goes that the session is ended.
What was run comes at the worker's end. All errors, files and lines on the terminal are the
controlling process's. Floor 5.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_specdec.fixtures import profile_name

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

    from pytest_specdec.profile_report import ProfileResult
    from pytest_specdec.scheduling import ProfileScheduling

WORKER = "specdec-worker"
CONTROLLER = "specdec-controller"
CHANNEL = "specdec_channel"
RESULTS = "specdec_results"
STOP = "stop"
# A second is usual. More than an engine is given to end by itself; then pytest-xdist kills them.
STOP_S = 20.0
LOOK_S = 0.02


class Controlled(Protocol):
    """What a controlling session does when it hears of profiles."""

    def control(self) -> None: ...


def join(config: pytest.Config, controlled: Callable[[], Controlled]) -> None:
    """Makes this session a worker's or a controlling one, where pytest-xdist distributes.

    Args:
        controlled: the controlling session's gate; asked for when some test needs a profile.
    """
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Worker(config), WORKER)
    elif config.getoption("dist") != "no" and config.getoption("tx"):
        config.pluginmanager.register(Controller(config, controlled), CONTROLLER)


class Worker:
    """This process, where it is a worker; its engines' watch, too."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        as_xdist_made_it: Any = config
        self._input: Mapping[str, Any] = as_xdist_made_it.workerinput
        self._output: dict[str, Any] = as_xdist_made_it.workeroutput
        self._is_ending = False

    @property
    def share(self) -> int:
        """Its number, as in `gw3`; a worker that replaces another one has a new number."""
        return int("".join(filter(str.isdecimal, self._input["workerid"])) or 0)

    @property
    def num_workers(self) -> int:
        """How many the session has."""
        return int(self._input["workercount"])

    def phase(self, text: str) -> None:
        """For the controlling process's terminal."""
        self._tell("phase", text)

    def progress(self, text: str) -> None:
        """Several workers would rewrite one line: nobody is told."""

    def fail(self, text: str) -> None:
        """Ends the whole session with this error, once, however many workers ask for that."""
        self._tell("error", text)

    def be_stopped(self) -> None:
        """Ends as by Ctrl-C when the controlling process says so, and at SIGTERM; once, so that
        what was run is told, however often a session is ended."""

        def stop(_signum: int, _frame: FrameType | None) -> None:
            if not self._is_ending:
                self._is_ending = True
                raise KeyboardInterrupt

        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, stop)
        # What is heard is heard on a thread; a signal reaches the one that waits for an engine.
        self._input[CHANNEL].setcallback(lambda _: os.kill(os.getpid(), signal.SIGINT))

    def finish(self, results: Sequence[ProfileResult]) -> None:
        """Sends what was run, with the end of this worker's session."""
        self._output[RESULTS] = pickle.dumps(results)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        # Before pytest-xdist sends the node ids: the scheduler needs to know both.
        named = {item.nodeid: profile_name(item) for item in session.items}
        self._tell("profiles", {nodeid: name for nodeid, name in named.items() if name is not None})

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        self._is_ending = True  # by itself, as with `-x`: that is not to be broken off
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        result = yield
        name = profile_name(item)
        if name is not None and (nextitem is None or profile_name(nextitem) != name):
            # Other workers may wait for the devices, and this one for tests of other kinds.
            from pytest_specdec.session import GateSession

            GateSession.of(self._config).leave(name)
        return result

    def _tell(self, kind: str, what: object) -> None:
        # Nobody is there to hear it when a session is ended.
        with contextlib.suppress(OSError):
            self._input[CHANNEL].send((kind, what))


class Controller:
    """This process, where it controls workers."""

    def __init__(self, config: pytest.Config, controlled: Callable[[], Controlled]) -> None:
        self._config = config
        self._controlled = controlled
        self._num_unread = 0
        self._profile_of: dict[str, str] = {}
        self._error: str | None = None
        self._results: dict[str, ProfileResult] = {}
        self._nodes: list[WorkerController] = []

    @property
    def results(self) -> Sequence[ProfileResult]:
        """One a profile, as far as workers came to their end, in the order of the command line."""
        return tuple(self._results.values())

    @pytest.hookimpl
    def pytest_configure_node(self, node: WorkerController) -> None:
        channel = node.workerinput[CHANNEL] = node.gateway.newchannel()
        channel.setcallback(partial(self._hear, node.gateway.id))
        self._nodes.append(node)

    @pytest.hookimpl(trylast=True)
    def pytest_xdist_make_scheduler(
        self, config: pytest.Config, log: Producer
    ) -> ProfileScheduling | None:
        # Without the file no test can need a profile, and pytest-xdist does as it always does.
        file = config.rootpath / str(config.getini("specdec_config"))
        if not file.exists() or config.getoption("dist") == "each":
            return None
        from pytest_specdec.scheduling import ProfileScheduling

        return ProfileScheduling(config, log, profile_of=self._profile_of)

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._num_unread += report.failed

    @pytest.hookimpl
    def pytest_xdist_node_collection_finished(self) -> None:
        self._raise_error()
        if self._profile_of:
            self._refuse_other_schedulers()
            self._stop_at_collection_errors()
            self._controlled().control()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self) -> None:
        self._raise_error()

    @pytest.hookimpl
    def pytest_testnodedown(self, node: WorkerController) -> None:
        sent: Mapping[str, Any] = getattr(node, "workeroutput", {})
        if RESULTS not in sent:
            return
        # Pickled by a process that this session started, of this very package.
        for each in pickle.loads(sent[RESULTS]):  # noqa: S301  # see above
            name = each.report.profile.name
            if each.has_run or name not in self._results:
                self._results[name] = each

    def stop(self) -> None:
        """Ends the workers of a session that is interrupted, and hears what they ran; those that
        take too long are not waited for."""
        if self._error is not None:
            return
        for node in self._nodes:
            with contextlib.suppress(OSError):  # it has ended
                node.workerinput[CHANNEL].send(STOP)
        deadline = time.monotonic() + STOP_S
        with contextlib.suppress(KeyboardInterrupt):  # by who does not wait for them
            while not all(map(_has_ended, self._nodes)) and time.monotonic() < deadline:
                time.sleep(LOOK_S)
        for node in self._nodes:
            self.pytest_testnodedown(node)

    def _hear(self, worker: str, told: tuple[str, Any]) -> None:
        """On a thread of its own, before pytest-xdist hears what the worker says next."""
        kind, what = told
        if kind == "phase":
            self.say(f"{worker}: {what}")
        elif kind == "error":
            self._error = self._error or what
        else:
            self._profile_of.update(what)

    def say(self, text: str) -> None:
        """On a line of the terminal."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or reporter.verbosity < 0:
            return
        # The letters of tests that workers ran: pytest itself knows of no line that is begun.
        writer = self._config.get_terminal_writer()
        if writer.width_of_current_line:
            writer.line()
        reporter.write_line(f"specdec: {text}")

    def _raise_error(self) -> None:
        if self._error is not None:
            raise pytest.UsageError(self._error)

    def _refuse_other_schedulers(self) -> None:
        from pytest_specdec.scheduling import ProfileScheduling

        distributed: Any = self._config.pluginmanager.get_plugin("dsession")
        if not isinstance(distributed.sched, ProfileScheduling):
            raise pytest.UsageError(
                "all tests of a profile run on one worker, and pytest-xdist's tests are given out "
                f"by another plan: {type(distributed.sched).__name__}\n"
                "hint: leave out `--dist each`, or the plugin that makes that plan"
            )

    def _stop_at_collection_errors(self) -> None:
        """As pytest does without workers: engines are not started for half a suite."""
        if self._num_unread and not self._config.option.continue_on_collection_errors:
            raise pytest.Session.Interrupted(f"errors during collection: {self._num_unread}")


def _has_ended(node: WorkerController) -> bool:
    """Whether nothing more will come of it."""
    return hasattr(node, "workeroutput") or bool(node.channel.isclosed())
