"""The fields of a request that bear upon a greedy answer, each with the value that does nothing.

One table for all who ask whether a field is at work. Floor 2; imports nothing from the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Masks and penalties are applied to the model's own log-probabilities before a token is taken. A
# mask takes tokens out and leaves the others' differences; a penalty moves them. An end changes no
# token, but how many there are.
CONSTRAINTS: Mapping[str, Any] = {"response_format": None, "structured_outputs": None}
MASKS: Mapping[str, Any] = {
    **CONSTRAINTS,
    "allowed_token_ids": None,
    "bad_words": None,
    "min_tokens": 0,
}
PENALTIES: Mapping[str, Any] = {
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "repetition_penalty": 1,
    "logit_bias": None,
}
ENDS: Mapping[str, Any] = {"stop": None, "stop_token_ids": None, "ignore_eos": False}


def applied(request: Mapping[str, Any], fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of a request that do something, of one of these tables."""
    return tuple(name for name, idle in fields.items() if request.get(name, idle) != idle)
