"""Which tests pytest-xdist keeps together, and what becomes of those of a worker that died."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("xdist")

from xdist.remote import Producer

from pytest_specdec.scheduling import ProfileScheduling

PROFILE_OF = {"a.jsonl::one::counts": "one", "test_own.py::test_own[one]": "one", "b::two": "two"}
PLAIN = ["test_x.py::TestX::test_a", "test_x.py::TestX::test_b", "test_x.py::test_c"]
GROUPED = "test_x.py::test_d[@]@group"


class Node:
    """Stands in for a worker; keeps what it is to run."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.sent: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        self.sent += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def scheduling(dist: str, num_workers: int = 2) -> Any:
    options = {"dist": dist, "tx": ["popen"] * num_workers}
    config: Any = SimpleNamespace(
        getvalue=options.get, getoption=options.get, option=SimpleNamespace(loadscopereorder=False)
    )
    return ProfileScheduling(config, Producer("", enabled=False), profile_of=PROFILE_OF)


@pytest.mark.parametrize(
    ("dist", "scopes"),
    [
        ("load", [*PLAIN, GROUPED]),
        ("worksteal", [*PLAIN, GROUPED]),
        ("loadscope", ["test_x.py::TestX", "test_x.py::TestX", "test_x.py", "test_x.py"]),
        ("loadfile", ["test_x.py"] * 4),
        ("loadgroup", [*PLAIN, "group"]),
    ],
)
def test_what_is_kept_together(dist: str, scopes: list[str]) -> None:
    schedule = scheduling(dist)
    assert [schedule._split_scope(each) for each in (*PLAIN, GROUPED)] == scopes
    profiles = ["profile one", "profile one", "profile two"]
    assert [schedule._split_scope(each) for each in PROFILE_OF] == profiles


def test_a_worker_that_died_leaves_what_it_had_not_begun() -> None:
    nodeids = [PLAIN[0], *PROFILE_OF, *PLAIN[1:]]
    first, second = Node("gw0"), Node("gw1")
    schedule = scheduling("load")
    for node in (first, second):
        schedule.add_node(node)
        schedule.add_node_collection(node, nodeids)
    schedule.schedule()
    # A test of nobody and one of a profile; two of the other profile, and one of nobody.
    assert (first.sent, second.sent) == ([0, 3], [1, 2, 4])
    second.shutting_down = True
    schedule.mark_test_complete(first, 0)
    assert first.sent == [0, 3, 5]
    assert schedule.remove_node(first) == "b::two"
    third = Node("gw2")
    schedule.add_node(third)
    schedule.add_node_collection(third, nodeids)
    schedule.schedule()
    # Neither what is done nor what it died in.
    assert third.sent == [5]


def test_a_worker_that_was_done_leaves_nothing() -> None:
    schedule, node = scheduling("load", 1), Node("gw0")
    schedule.add_node(node)
    schedule.add_node_collection(node, PLAIN[:1])
    schedule.schedule()
    schedule.mark_test_complete(node, 0)
    assert schedule.remove_node(node) is None
    assert not schedule.has_pending
