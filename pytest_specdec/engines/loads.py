"""In which order a pair's passes are taken: loads, blocks, and when there are enough. Floor 1.

`passes` takes each, `asides` what is asked beside them; `taken` keeps what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from pytest_specdec.engines import asides
from pytest_specdec.engines.passes import EngineOf, Passes
from pytest_specdec.engines.protocol import IsDecided, Watch
from pytest_specdec.engines.taken import Taken
from pytest_specdec.errors import FATAL, EngineError
from pytest_specdec.generation import ROLES, Role, RunPair
from pytest_specdec.profile import Profile
from pytest_specdec.workload import Workload

ABBA: tuple[Role, ...] = ("baseline", "speculative", "speculative", "baseline")


def _never(_workload: Workload, _runs: RunPair) -> bool:
    return False


class Loads:
    """All that is taken of a profile's workloads, each once.

    Args:
        engine: the loaded engine of a role.
        close: ends both engines, before they are started again.
        watch: told what goes on.
    """

    def __init__(
        self,
        profile: Profile,
        passes: Passes,
        *,
        engine: EngineOf,
        close: Callable[[], None],
        watch: Watch,
    ) -> None:
        self._profile = profile
        self._passes = passes
        self._engine = engine
        self._close = close
        self._watch = watch
        self._workloads: dict[str, Workload] = {}
        self._is_decided: IsDecided = _never
        self._taken: dict[str, Taken] = {}
        self._done: set[str] = set()
        self._refused: dict[str, EngineError] = {}

    def plan(self, workloads: Iterable[Workload], is_decided: IsDecided | None) -> None:
        """Names the workloads that each start of the engines serves, and who says when the passes
        over one are enough."""
        self._workloads = {workload.name: workload for workload in workloads}
        self._is_decided = is_decided or _never

    def is_done(self, workload: Workload) -> bool:
        """Whether all of it has been taken, or refused."""
        return workload.name in self._done

    def runs(self, workload: Workload) -> RunPair:
        """What was taken of a workload that is done.

        Raises:
            EngineError: its requests were refused.
        """
        if workload.name in self._refused:
            raise self._refused[workload.name]
        return self._taken[workload.name].runs(workload.name)

    def take(self, workload: Workload) -> None:
        """Takes the passes over a workload; where engines must be started again for more of them,
        over all planned ones, so that each start serves all."""
        alone = self._profile.layout == "concurrent" and self._profile.num_loads == 1
        planned = {} if alone else self._workloads
        workloads = {**planned, workload.name: workload}.values()
        waiting = [each for each in workloads if each.name not in self._done]
        for load in range(self._profile.num_loads):
            if load:
                waiting = [each for each in waiting if not self._is_enough(each)]
                if not waiting:
                    break
                self._watch.phase(f"load {load + 1} of at most {self._profile.num_loads}")
                self._close()
            self._take_load(waiting)
        self._done |= self._taken.keys() | self._refused.keys()

    def _take_load(self, workloads: Sequence[Workload]) -> None:
        if self._profile.layout == "concurrent":
            for each in workloads:
                self._guarded(each, self._take_blocks)
        else:
            for role in ROLES:
                for each in workloads:
                    self._guarded(each, partial(self._take_half, role))
        for each in workloads:
            self._guarded(each, self._score)

    def _guarded(self, workload: Workload, take: Callable[[Workload], None]) -> None:
        """A workload whose requests are refused does not keep the others from running."""
        if workload.name in self._refused:
            return
        try:
            take(workload)
        except FATAL:
            raise
        except EngineError as error:
            self._refused[workload.name] = error

    def _take_blocks(self, workload: Workload) -> None:
        """One load's ABBA blocks, until they are enough."""
        if not workload.gated:
            self._take_once(workload)
            return
        blocks = self._profile.num_blocks
        self._passes.announce(workload, f"up to {len(ABBA) * blocks} passes")
        for role in ROLES:
            self._passes.warm_up(role, workload)
        for block in range(blocks):
            self._add(workload, ABBA, f"block {block + 1} of {blocks}")
            if self._profile.num_loads == 1 and self._is_enough(workload):
                break
        self._end_load(workload, ROLES)

    def _take_once(self, workload: Workload) -> None:
        """The passes that nobody times."""
        if workload.name in self._taken:
            return  # by an earlier load
        order = _untimed(workload)
        self._passes.announce(workload, f"{len(order)} passes, not timed")
        self._add(workload, order, "not timed")
        self._end_load(workload, ROLES)

    def _take_half(self, role: Role, workload: Workload) -> None:
        """One engine's passes of a load, all of them at once."""
        if not workload.gated and self._so_far(workload).num_loads:
            return  # taken by an earlier load
        whole = ABBA * self._profile.num_blocks if workload.gated else _untimed(workload)
        order = [each for each in whole if each == role]
        self._passes.announce(workload, f"{len(order)} passes of the {role} engine")
        if workload.gated:
            self._passes.warm_up(role, workload)
        self._add(workload, order, "all its passes")
        self._end_load(workload, [role])

    def _so_far(self, workload: Workload) -> Taken:
        return self._taken.get(workload.name, Taken())

    def _add(self, workload: Workload, order: Sequence[Role], which: str) -> None:
        passes, conditions = self._passes.in_order(order, workload, which)
        before = self._so_far(workload)
        self._taken[workload.name] = replace(
            before,
            passes=(*before.passes, *passes),
            conditions=(*before.conditions, conditions),
        )

    def _end_load(self, workload: Workload, roles: Sequence[Role]) -> None:
        """After some engines' passes of a load: in the first one, what is asked beside them."""
        taken = self._taken[workload.name]
        if not taken.num_loads:
            for role in roles:
                again = {**taken.again, **asides.retakes(self._passes, role, workload)}
                refused = asides.refusals(self._engine(role), role, workload)
                taken = replace(taken, again=again, refusals=(*taken.refusals, *refused))
        if roles[-1] == ROLES[-1]:
            taken = replace(taken, num_loads=taken.num_loads + 1)
        self._taken[workload.name] = taken

    def _score(self, workload: Workload) -> None:
        taken, prompts = self._taken[workload.name], asides.sampled(workload)
        if taken.sample_scores or not prompts:
            return
        self._passes.announce(workload, "the baseline engine scores the sampled answers")
        scores = asides.sample_scores(self._engine("baseline"), prompts, taken)
        self._taken[workload.name] = replace(taken, sample_scores=scores)

    def _is_enough(self, workload: Workload) -> bool:
        if workload.name in self._refused:
            return True
        return self._is_decided(workload, self._taken[workload.name].runs(workload.name))


def _untimed(workload: Workload) -> Sequence[Role]:
    """One pass of each engine, two where an answer must repeat itself."""
    return ABBA if any(prompt.is_seeded for prompt in workload.asked) else ROLES
