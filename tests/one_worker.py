"""pytest-xdist's distribution of our own tests. Its groups need node ids that can be changed, which
those of pytest 9.2 cannot."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

ENGINES = ("tests/real/", "tests/faults/test_faults.py")
"""Where tests start real engines."""


class EnginesOnOneWorker(LoadScopeScheduling):  # type: ignore[misc]  # it publishes no types
    """All real engines are one worker's, from its first test on: two at a time would only share the
    CPU. Every other test is given out alone."""

    def _split_scope(self, nodeid: str) -> str:
        return "engines" if nodeid.startswith(ENGINES) else nodeid
