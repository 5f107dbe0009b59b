"""What engines take of the machine: time to load, weights, KV cache, memory. Floor 1.

`costing` makes it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCost:
    """What one engine takes; `None` for what could not be had.

    Attributes:
        load_s: seconds from its arguments to a loaded engine.
        weights_bytes: of its models' files, in the engine's `dtype`; the draft's among them.
        kv_cache_blocks: blocks of KV cache that it has for requests.
        kv_cache_tokens: tokens that these hold.
        peak_memory_bytes: of its processes on the CPU, or of what they hold of the GPU.
    """

    load_s: float | None = None
    weights_bytes: int | None = None
    kv_cache_blocks: int | None = None
    kv_cache_tokens: int | None = None
    peak_memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What speculation takes, beside what the baseline engine takes.

    Attributes:
        draft_weights_bytes: of the draft model's own files, in the engine's `dtype`; `None` for
            methods without one.
        size_ratio: how many times larger the target is than the draft model.
    """

    baseline: EngineCost
    speculative: EngineCost
    draft_weights_bytes: int | None = None
    size_ratio: float | None = None
