"""Hands timed passes to pytest-benchmark, where it is installed and asked to keep something.

It offers no way to add times that others took: its hooks change what it has, and write nothing
where it has nothing. So its own classes are made of our passes, and put where its fixture puts
them. Floor 5.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator, Iterable
from typing import Any

import pytest

from pytest_specdec.report.benchmark_entries import BenchmarkEntry

# The name under which pytest-benchmark registers its session.
SESSION = "pytest-benchmark"
KEEPING = ("json", "save", "autosave", "compare", "histogram")


def is_asked(config: pytest.Config) -> bool:
    """Whether pytest-benchmark is to write, compare or draw something, and times anything."""
    return is_keeping(config) and not config.getoption("benchmark_skip", default=False)


def is_keeping(config: pytest.Config) -> bool:
    """Whether pytest-benchmark is to write, compare or draw something."""
    return any(config.getoption(f"benchmark_{each}", None) for each in KEEPING)


class _NoEntries(list[Any]):
    """An empty list that pytest-benchmark does not take for nothing to write."""

    def __bool__(self) -> bool:
        return True


class NothingTimed:
    """What becomes of a session in which nothing was timed: its JSON has no entries.

    pytest-benchmark itself warns of that, and leaves no file, an older one, or an empty one; where
    warnings are errors, this one ends the session in a traceback.
    """

    def __init__(self) -> None:
        self._is_told = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # before pytest-benchmark writes
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        own: Any = getattr(session.config, "_benchmarksession", None)
        # One of another shape is left to itself.
        if not getattr(own, "disabled", True) and not getattr(own, "benchmarks", True):
            own.benchmarks = _NoEntries()
            # A saved session without entries would be the last one, which others compare with.
            own.save = own.autosave = None
            self._is_told = True
        return (yield)

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._is_told:
            terminalreporter.line(
                "pytest-benchmark: nothing was timed, so that its JSON has no entries, and nothing "
                "is saved"
            )


def hand_over(config: pytest.Config, entries: Iterable[BenchmarkEntry]) -> str | None:
    """Adds the entries to its own.

    Returns:
        Why they could not be added; `None` where they were, or were not to be.
    """
    try:
        session: Any = config.pluginmanager.get_plugin(SESSION)
        if not session.disabled:
            session.benchmarks.extend([_benchmark(each) for each in entries])
    except (ImportError, AttributeError, TypeError) as error:
        return (
            f"this pytest-benchmark takes no times from elsewhere: {type(error).__name__}: {error}"
            "\nhint: what it keeps lacks the gate's passes; install pytest-benchmark 5, or leave "
            "its options out"
        )
    return None


def _benchmark(entry: BenchmarkEntry) -> Any:
    stats = importlib.import_module("pytest_benchmark.stats")
    benchmark = stats.Metadata(entry, iterations=1, options={})
    for seconds in entry.seconds:
        benchmark.update(seconds)
    benchmark.as_dict()  # if it is to fail, then here
    return benchmark
