"""pytest-xdist's distribution of tests, with all tests of a profile on one worker. Floor 5.

Imported only where pytest-xdist distributes.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController


class ProfileScheduling(LoadScopeScheduling):  # type: ignore[misc]  # it publishes no types
    """Gives out tests in units: one a profile, in the order they were collected, and of all other
    tests those that `--dist` keeps together.

    Args:
        profile_of: by node id, the profile of each test that needs one; complete when the last
            worker has collected.
    """

    def __init__(
        self, config: pytest.Config, log: Producer, *, profile_of: Mapping[str, str]
    ) -> None:
        super().__init__(config, log)
        self._profile_of = profile_of

    def _split_scope(self, nodeid: str) -> str:
        if (profile := self._profile_of.get(nodeid)) is not None:
            return f"profile {profile}"
        dist = self.config.getoption("dist")
        if dist == "loadscope":
            return nodeid.rsplit("::", 1)[0]
        if dist == "loadfile":
            return nodeid.partition("::")[0]
        if dist == "loadgroup" and nodeid.rfind("@") > nodeid.rfind("]"):
            return nodeid.rpartition("@")[2]
        return nodeid

    def remove_node(self, node: WorkerController) -> str | None:
        """Gives out again what a worker did not finish, without the test that it died in: that one
        has failed, and may end the next worker, too. Units that are finished are not given out
        either; a worker that gets one waits for ever.
        """
        units: dict[str, dict[str, bool]] = self.assigned_work.pop(node)
        unfinished = [
            (unit, nodeid)
            for unit in units.values()
            for nodeid, is_complete in unit.items()
            if not is_complete
        ]
        if not unfinished:
            return None
        unit, crashed = unfinished[0]
        unit[crashed] = True
        self.workqueue.update(
            {scope: each for scope, each in units.items() if not all(each.values())}
        )
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed
