"""Properties of the whole session, for pytest's JUnit file. Floor 5."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.report.properties import Properties


def record_suite_properties(config: pytest.Config, properties: Properties) -> None:
    """Adds them to the file that this process writes, before it is written; workers of pytest-xdist
    write none. What the fixture `record_testsuite_property` does, where there is no fixture."""
    for plugin in config.pluginmanager.get_plugins():
        record: Any = getattr(plugin, "add_global_property", None)
        if callable(record):
            for name, value in properties:
                record(name, value)
