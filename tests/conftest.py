"""What the plugin's own tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.fake_engine.project import Project


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
