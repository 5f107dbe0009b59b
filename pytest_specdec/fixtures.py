"""Fixtures for tests of one's own: the engines, a workload, its runs, its stored numbers. Floor 5.

    @pytest.mark.specdec("prompts/orders.jsonl")
    def test_no_answer_apologises(runs):
        assert not any("sorry" in each.text for each in runs.speculative.generations)

Heavy rooms are imported inside the fixtures: this module is loaded in every pytest session.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_specdec.engines.protocol import Engine, Pair
    from pytest_specdec.generation import RunPair
    from pytest_specdec.profile_gate import ProfileGate
    from pytest_specdec.stored_baseline import StoredBaseline
    from pytest_specdec.workload import Workload

PROFILE_FIXTURE = "specdec_profile"


@pytest.fixture(scope="session")
def specdec_profile(request: pytest.FixtureRequest) -> ProfileGate:
    """The profile under test; a test that uses any of our fixtures runs once for each."""
    from pytest_specdec.session import GateSession

    with message_only():
        session = GateSession.of(request.config)
        session.skip_without_engines()
        return session.profile(request.param)


@pytest.fixture(scope="session")
def engine_pair(specdec_profile: ProfileGate) -> Pair:
    """Both engines of the profile, started on first use and once; or their recording."""
    return specdec_profile.pair


@pytest.fixture
def baseline_engine(engine_pair: Pair) -> Engine:
    """The loaded target model without speculation, or as `baseline` of the profile says."""
    with message_only():
        return engine_pair.engine("baseline")


@pytest.fixture
def speculative_engine(engine_pair: Pair) -> Engine:
    """The loaded target model with speculation."""
    with message_only():
        return engine_pair.engine("speculative")


@pytest.fixture
def workload(request: pytest.FixtureRequest) -> Workload:
    """The workload named by the test's `specdec` marker, relative to the test's file."""
    from pytest_specdec.marked import marked_workload

    with message_only():
        return marked_workload(request.node)


@pytest.fixture
def runs(specdec_profile: ProfileGate, workload: Workload) -> RunPair:
    """Both engines' runs over the workload, taken once per session."""
    with message_only():
        return specdec_profile.assessment(workload).runs


@pytest.fixture
def stored_baseline(specdec_profile: ProfileGate) -> StoredBaseline | None:
    """The profile's stored baseline on this hardware; `None` when there is none."""
    return specdec_profile.stored


def profile_name(item: pytest.Item) -> str | None:
    """The profile an item needs: its own, or that of our fixtures; `None` for all other items."""
    if (own := getattr(item, "profile_name", None)) is not None:
        return str(own)
    params = getattr(getattr(item, "callspec", None), "params", {})
    # Where no gate could be made there are no profiles, and pytest makes one parameter of none.
    return name if isinstance(name := params.get(PROFILE_FIXTURE), str) else None


@contextmanager
def message_only() -> Iterator[None]:
    """Our errors are messages for people: no traceback, and no chain of exceptions."""
    from pytest_specdec.errors import SpecdecError

    try:
        yield
    except SpecdecError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
