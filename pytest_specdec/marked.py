"""The workload that a test asks for: an item of ours holds it, any other names it by its marker.

Floor 5.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_specdec.errors import SpecdecError
from pytest_specdec.workload import Workload, read_workload


def marked_path(item: pytest.Item) -> Path | None:
    """The file that a test's `specdec` marker names; `None` where there is no such marker."""
    marker = item.get_closest_marker("specdec")
    if marker is None or len(marker.args) != 1:
        return None
    return item.path.parent / str(marker.args[0])


def marked_workload(item: pytest.Item) -> Workload:
    """The workload that a test's `specdec` marker names.

    Raises:
        SpecdecError: there is no such marker, or the file cannot be read.
    """
    if (path := marked_path(item)) is None:
        raise SpecdecError(
            f"`{item.name}` uses the `workload` fixture but names no workload",
            hint='mark it: @pytest.mark.specdec("prompts.jsonl")',
        )
    return read_workload(path)


def planned_workload(item: pytest.Item) -> Workload | None:
    """The workload an item will ask for, as far as that can be known before it runs."""
    if (own := getattr(item, "workload", None)) is not None:
        return own if isinstance(own, Workload) else None
    try:
        return marked_workload(item)
    except SpecdecError:
        return None
