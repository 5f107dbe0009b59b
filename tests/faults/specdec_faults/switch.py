"""Which fault is on.

`SPECDEC_FAULT` holds its name, or `@PATH`: a file that holds the name and may be changed while the
engine lives; empty for none. Faults bite the speculative engine alone: both load the plugin.
`mended`, or `mended+NAME` with a fault, sets right what vLLM's CPU build gets wrong in sampling
(see `sampling`), without which a fault there cannot be told from vLLM's own.
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
    """Learns of every engine made in this process whether it speculates."""
    from vllm.v1.engine.core import EngineCore
    from vllm.v1.engine.llm_engine import LLMEngine
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    # Each may live in a process of its own.
    for part in (LLMEngine, EngineCore, GPUModelRunner):

        @wraps(part, "__init__")
        def _learn(original: Any, self: Any, vllm_config: Any, *args: Any, **kwargs: Any) -> None:
            global _is_speculative  # noqa: PLW0603 - one engine a process
            _is_speculative = vllm_config.speculative_config is not None
            original(self, vllm_config, *args, **kwargs)


def is_on(name: str) -> bool:
    """Whether that fault is to bite now."""
    mended, plus, fault = current().partition("+")
    return _is_speculative and (fault if plus else mended) == name


def is_mended() -> bool:
    """Whether vLLM's own defect in sampling is to be set right now."""
    return current().partition("+")[0] == "mended"


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
