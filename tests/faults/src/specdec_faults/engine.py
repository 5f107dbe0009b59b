"""Faults of the engine as a whole: it does not load, dies, hangs, or grows slower."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any, NoReturn

from specdec_faults import switch

STEPS_BEFORE = 10
VERIFY_SHARE = 0.15
FIRST_DELAY_S = 0.01
DELAY_GROWTH = 1.3


def install() -> None:
    """Puts them around loading and around each step."""
    from vllm.model_executor.model_loader.base_loader import BaseModelLoader

    @switch.wraps(BaseModelLoader, "load_model")
    def _load(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        if switch.is_on("load-fails"):
            load_fails()
        return original(self, *args, **kwargs)

    after_each_step(bite)


def after_each_step(act: Callable[[float], None]) -> None:
    """Calls `act` at the end of each of the engine's steps, told when the step began."""
    from vllm.v1.engine.core import EngineCore

    def step(original: Any, self: Any) -> Any:
        begun_s = time.perf_counter()
        outputs = original(self)
        act(begun_s)
        return outputs

    # With asynchronous scheduling steps are those of a queue.
    for name in ("step", "step_with_batch_queue"):
        switch.wraps(EngineCore, name)(step)


def lengthen(begun_s: float, share: float) -> None:
    """Sleeps for that share of the time since then."""
    time.sleep(share * (time.perf_counter() - begun_s))


def bite(begun_s: float) -> None:
    """Does what the fault does to a step, where one is on that does."""
    fault = FAULTS.get(switch.biting())
    if fault is not None:
        fault(begun_s)


def load_fails() -> NoReturn:
    """Weights that do not fit beside what speculation needs."""
    import torch

    raise torch.OutOfMemoryError("out of memory: tried to allocate 2.00 GiB")


def crash(begun_s: float) -> None:
    """A process that the system ends while it generates, as when memory runs out."""
    if num_steps() > STEPS_BEFORE:
        os.kill(os.getpid(), signal.SIGKILL)


def hang(begun_s: float) -> None:
    """A collective or a kernel that never returns."""
    while num_steps() > STEPS_BEFORE:
        time.sleep(1)


def slow_death(begun_s: float) -> None:
    """A list that is walked in each step and never emptied: steps return, each later than the one
    before."""
    time.sleep(FIRST_DELAY_S * DELAY_GROWTH ** num_steps())


def verify_slow(begun_s: float) -> None:
    """A slower way of verifying several tokens at once, such as another attention kernel."""
    lengthen(begun_s, VERIFY_SHARE)


def num_steps() -> int:
    """How often the fault has been asked, this time included."""
    switch.state["num_steps"] = switch.state.get("num_steps", 0) + 1
    return int(switch.state["num_steps"])


FAULTS: dict[str, Callable[[float], None]] = {
    "crash": crash,
    "hang": hang,
    "slow-death": slow_death,
    "verify-slow": verify_slow,
}
