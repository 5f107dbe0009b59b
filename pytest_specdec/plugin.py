"""pytest's hooks, each a few lines that ask the right room. Floor 5.

Loaded in every session of every project that has this package installed: until a workload, one of
our fixtures or one of our options appears, nothing else of the package is imported.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_specdec.fixtures import (
    PROFILE_FIXTURE,
    baseline_engine,
    engine_pair,
    profile_name,
    runs,
    specdec_profile,
    speculative_engine,
    stored_baseline,
    workload,
)
from pytest_specdec.options import Options, add_options

if TYPE_CHECKING:
    from pytest_specdec.session import GateSession
    from pytest_specdec.suite import WorkloadFile
    from pytest_specdec.workload import Workload

__all__ = [
    "baseline_engine",
    "engine_pair",
    "runs",
    "specdec_profile",
    "speculative_engine",
    "stored_baseline",
    "workload",
]

ACTIVE = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "specdec(workload): names the `.jsonl` workload of a test's `workload` and `runs` "
        "fixtures, relative to the test's file",
    )
    is_worker = hasattr(config, "workerinput")
    if is_worker or hasattr(config.hook, "pytest_xdist_make_scheduler"):
        from pytest_specdec.workers import join

        join(config, partial(_session, config))
    # What a worker lacks is told when it has collected.
    if not (is_worker or config.option.help) and Options.from_pytest_config(config).is_explicit:
        _session(config).check()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> WorkloadFile | None:
    if file_path.suffix != ".jsonl" or not _is_in_suite(file_path, parent.config):
        return None
    from pytest_specdec.suite import WorkloadFile

    _session(parent.config)
    return WorkloadFile.from_parent(parent, path=file_path)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if PROFILE_FIXTURE in metafunc.fixturenames:
        names = [each.profile.name for each in _session(metafunc.config).profile_gates()]
        metafunc.parametrize(PROFILE_FIXTURE, names, indirect=True, scope="session")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> Generator[None]:
    # Ours among them before tests are deselected, so that it can be, as any other.
    if _has_session(config) and _session(config).options.strict_baselines:
        from pytest_specdec.stored_entries import stored_entries

        items += stored_entries(session, _planned_by_profile(items))
    yield
    # All of a profile's tests together: its engines are started once. Metrics come last among
    # them: they are judged together, when all that is planned has run.
    order: dict[str | None, int] = {None: 0}
    for item in items:
        order.setdefault(profile_name(item), len(order))
    items.sort(key=lambda item: (order[profile_name(item)], getattr(item, "is_judged_last", False)))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    config = session.config
    will_stop = session.testsfailed and not config.option.continue_on_collection_errors
    if config.option.collectonly or (will_stop and not hasattr(config, "workerinput")):
        return
    planned = _planned_by_profile(session.items)
    has_error = _has_session(config) and not _session(config).profile_gates()
    if planned or has_error:
        _session(config).start(planned)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    return _session(config).header() if _has_session(config) else []


@pytest.hookimpl(tryfirst=True)  # what cannot be set up is told too
def pytest_runtest_setup(item: pytest.Item) -> None:
    if _has_session(item.config):
        from pytest_specdec.own_tests import tell_about

        tell_about(item)


@pytest.hookimpl(tryfirst=True)  # before pytest writes its JUnit file
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if _has_session(session.config):
        # With `-x` the exit status is that of a session with failures.
        is_complete = not session.shouldfail and exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.TESTS_FAILED,
        )
        is_stored = _session(session.config).finish(is_complete=is_complete)
        if not is_stored and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    lines = list(_session(config).summary()) if _has_session(config) else []
    if lines:
        terminalreporter.write_sep("=", "speculative decoding gate")
        for line in lines:
            terminalreporter.line(line)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        _annotate(terminalreporter, config)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _has_session(config):
        _session(config).close()


def _annotate(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    from pytest_specdec.github import annotations_of
    from pytest_specdec.report.annotations import annotation_lines

    terminalreporter.ensure_newline()  # a command begins its line
    for line in annotation_lines(annotations_of(terminalreporter.stats, config.rootpath)):
        terminalreporter.line(line)


def _is_in_suite(file_path: Path, config: pytest.Config) -> bool:
    folders = Options.from_pytest_config(config).suite_folders
    return any(file_path.is_relative_to(folder) for folder in folders)


def _planned_by_profile(items: list[pytest.Item]) -> dict[str, list[Workload]]:
    """The workloads that tests will ask for, each once, in the tests' order."""
    planned: dict[str, dict[tuple[Path, str], Workload]] = {}
    for item in items:
        if (name := profile_name(item)) is not None:
            planned.setdefault(name, {}).update(_planned(item))
    return {name: [*each.values()] for name, each in planned.items()}


def _planned(item: pytest.Item) -> dict[tuple[Path, str], Workload]:
    from pytest_specdec.marked import planned_workload

    planned = planned_workload(item)
    return {} if planned is None else {(planned.path, planned.name): planned}


def _has_session(config: pytest.Config) -> bool:
    """Whether this session has anything to do with us; asking must not change the answer."""
    return config.stash.get(ACTIVE, False)


def _session(config: pytest.Config) -> GateSession:
    from pytest_specdec.session import GateSession

    config.stash[ACTIVE] = True
    return GateSession.of(config)
