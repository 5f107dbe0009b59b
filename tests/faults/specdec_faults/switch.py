"""Which fault is on.

`SPECDEC_FAULT` holds its name, or `@PATH`: a file that holds the name and may be changed while the
engine lives; empty for none. Faults bite the speculative engine alone: the plugin is loaded by both.
"""

from __future__ import annotations

import functools
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
    from vllm.v1.engine.llm_engine import LLMEngine

    @wraps(LLMEngine, "__init__")
    def _learn(original: Any, self: Any, vllm_config: Any, *args: Any, **kwargs: Any) -> None:
        global _is_speculative  # noqa: PLW0603 - one engine a process
        _is_speculative = vllm_config.speculative_config is not None
        original(self, vllm_config, *args, **kwargs)


def is_on(name: str) -> bool:
    """Whether that fault is to bite now."""
    return _is_speculative and current() == name


def current() -> str:
    """The fault that is named; empty for none."""
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

        setattr(owner, name, replaced)

    return replace
