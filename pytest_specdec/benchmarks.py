"""Hands timed passes to pytest-benchmark, where it is installed and asked to keep something.

It offers no way to add times that others took: its hooks change what it has, and write nothing
where it has nothing. So its own classes are made of our passes, and put where its fixture puts
them. Floor 5.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

import pytest

from pytest_specdec.report.benchmark_entries import BenchmarkEntry

# The name under which pytest-benchmark registers its session.
SESSION = "pytest-benchmark"
KEEPING = ("json", "save", "autosave", "compare", "histogram")


def is_asked(config: pytest.Config) -> bool:
    """Whether pytest-benchmark is to write, compare or draw something, and times anything."""
    is_keeping = any(config.getoption(f"benchmark_{each}", None) for each in KEEPING)
    return is_keeping and not config.getoption("benchmark_skip", default=False)


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
