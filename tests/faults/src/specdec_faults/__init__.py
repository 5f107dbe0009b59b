"""Faults for a real vLLM engine, one at a time, that a gate must find.

A `vllm.general_plugins` entry point: vLLM calls `install` in every process of an engine. Without
`SPECDEC_FAULT` nothing is touched. Which fault is on is asked each time it could bite (see
`switch`), so one loaded engine can be given one fault after another.
"""

from __future__ import annotations

import os


def install() -> None:
    """Puts the faults in their places, where they wait until one is named."""
    if "SPECDEC_FAULT" not in os.environ:
        return
    from specdec_faults import (
        counts,
        drafts,
        engine,
        grammar,
        harmless,
        requests,
        sampling,
        switch,
        tokens,
    )

    switch.install()
    for module in (tokens, sampling, grammar, requests, counts, drafts, engine, harmless):
        module.install()
