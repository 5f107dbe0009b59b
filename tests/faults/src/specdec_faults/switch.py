"""Which fault is on.

`SPECDEC_FAULT` holds its name, or `@PATH`: a file that holds the name and may be changed while the
engine lives; empty for none. The plugin is loaded by both engines; faults bite the speculative one
alone, but for those that ask otherwise. `mended`, or `mended+NAME` with a fault, sets right what
vLLM's CPU build gets wrong in sampling (see `sampling`), without which a fault there cannot be told
from vLLM's own.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

state: dict[str, Any] = {}
"""What a fault remembers; emptied when another is named."""

_seen = ""
_is_speculative = False


def install() -> None:
    """Learns of every engine made in this process whether it speculates.

    An engine may be three processes: its front, its core and its workers.
    """
    from vllm.v1.engine.core import EngineCore
    from vllm.v1.engine.llm_engine import LLMEngine
    from vllm.v1.worker.worker_base import WorkerBase

    def learn(original: Any, self: Any, vllm_config: Any, *args: Any, **kwargs: Any) -> None:
        global _is_speculative  # noqa: PLW0603 - one engine a process
        _is_speculative = vllm_config.speculative_config is not None
        original(self, vllm_config, *args, **kwargs)

    for owner in (LLMEngine, EngineCore, WorkerBase):
        wraps(owner, "__init__")(learn)


def is_on(name: str, *, anywhere: bool = False) -> bool:
    """Whether that fault is to bite now; `anywhere`: in the baseline engine, too."""
    return (anywhere or _is_speculative) and _fault() == name


def is_mended() -> bool:
    """Whether vLLM's own defect in sampling is to be set right now."""
    return current().partition("+")[0] == "mended"


def biting() -> str:
    """The fault that is to bite now; empty for none."""
    return _fault() if _is_speculative else ""


def _fault() -> str:
    mended, plus, fault = current().partition("+")
    return fault if plus else "" if mended == "mended" else mended


def current() -> str:
    """What the switch says; empty for no fault."""
    global _seen  # noqa: PLW0603 - the switch is the process's
    named = os.environ.get("SPECDEC_FAULT", "")
    if named.startswith("@"):
        path = Path(named[1:])
        named = path.read_text(encoding="utf-8").strip() if path.is_file() else ""
    if named != _seen:
        _seen = named
        state.clear()
    return named


def wraps(owner: Any, name: str) -> Callable[[Callable[..., Any]], None]:
    """Replaces `owner.name` by the decorated function, which gets the original first."""

    def replace(wrapper: Callable[..., Any]) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def replaced(*args: Any, **kwargs: Any) -> Any:
            return wrapper(original, *args, **kwargs)

        is_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
        setattr(owner, name, staticmethod(replaced) if is_static else replaced)

    return replace
