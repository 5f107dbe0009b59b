"""What the plugin's own tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fake_engine.project import Project


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project with the fake engine. However its session ended, no engine may outlive it."""
    project = Project(pytester, monkeypatch)
    yield project
    assert project.engines_left_behind() == []
