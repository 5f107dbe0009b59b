"""Kinds: what each check can find, in the words that reports and known defects call it by.

docs/reference/findings/ has a page for each. Floor 3; pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from pytest_specdec.checks.triage import Kind
from pytest_specdec.verdict import VerdictKind

_ANY_ANSWER = (
    "grammar violation",
    "engine error",
    "aborted",
    "whitespace runaway",
    "empty",
    "special token",
    "fenced",
    "truncated",
)
_TEXT_AFTER = "text after the end"
_VALIDITY = {
    "json": (
        *_ANY_ANSWER,
        "doubled braces",
        "text before the start",
        _TEXT_AFTER,
        "invalid JSON",
        "schema violation",
    ),
    "sql": (
        *_ANY_ANSWER,
        "invalid SQL",
        "not a statement",
        "wrong statement",
        "more than one statement",
        _TEXT_AFTER,
        "empty projection",
        "unknown name",
        "repeated column",
        "wrong number of values",
        "missing GROUP BY",
        "refused by sqlite",
        "refused by duckdb",
    ),
    "regex": (*_ANY_ANSWER, "regex mismatch", _TEXT_AFTER),
    "choice": (*_ANY_ANSWER, "not a choice", _TEXT_AFTER),
}
_VERDICTS = tuple(kind for kind in get_args(VerdictKind) if kind != "passed")

KINDS: Mapping[str, tuple[str, ...]] = {
    "identical": get_args(Kind),
    **_VALIDITY,
    "replay": ("not repeated",),
    "honoured": (
        "text after stop",
        "token after stop",
        "wrong stop",
        "too many tokens",
        "too few tokens",
        "ended early",
        "token not allowed",
        "bad word",
        "answers missing",
        "too many answers",
        "not judged",
    ),
    "logprobs": (
        "logprobs missing",
        "logprobs not finite",
        "logprobs above zero",
        "logprobs differ",
    ),
    "refused": ("not refused", "refused without speculation", "not asked"),
    "exercised": (
        "too short",
        "broken off",
        "counts unknown",
        "nothing drafted",
        "nothing rejected",
        "one-token drafts",
        "no effect",
    ),
    "counts": ("miscounted",),
    "drift": ("acceptance drifts",),
    "distribution": ("distribution", "uncalibrated", "too few tokens", "not judged"),
    "again": (
        "not brought about",
        "divergence",
        "baseline not repeatable",
        *dict.fromkeys(kind for kinds in _VALIDITY.values() for kind in kinds),
        "acceptance fell",
    ),
    "acceptance": _VERDICTS,
    "speedup": _VERDICTS,
}
"""By check; of a metric its verdicts that can fail."""
