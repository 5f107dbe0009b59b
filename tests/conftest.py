"""What the plugin's own tests share."""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterator
from typing import Any

import hypothesis
import pytest

from tests.fake_engine.project import Project
from tests.turns import shared_folder, turn

# How long an example takes is what the other worker leaves of the machine.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "alone: no other worker runs a test meanwhile")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Real engines are all of one worker: two at a time would only share the CPU."""
    from tests.one_worker import EnginesOnOneWorker

    return EnginesOnOneWorker(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """What is timed with a real engine has the machine for itself."""
    alone = item.get_closest_marker("alone") is not None
    with turn(shared_folder(item.config), alone=alone):
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """What the tests start hears Ctrl-C, though a script in the background has it ignored."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project with the fake engine. However its session ended, no engine may outlive it."""
    project = Project(pytester, monkeypatch)
    yield project
    assert project.engines_left_behind() == []
