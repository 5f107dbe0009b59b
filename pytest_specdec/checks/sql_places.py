"""Where in an answer a reason to refuse it lies: for reports, which mark the place.

A guess where the validator gives names alone: the first place where the name stands as a name.
Floor 2: imports nothing from the package; `sqlglot` is imported on use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Our own reasons quote names in backticks; sqlite's do not.
_NAME = re.compile(
    r"`([^`]+)`|near \"(.+?)\": |no such (?:table|column|function): (\S+)"
    r"|has no column named (\S+)"
)


def place_of_error(text: str, detail: Mapping[str, Any]) -> int | None:
    """The 0-based character where the token begins that sqlglot stopped at."""
    line, column, token = detail.get("line"), detail.get("col"), detail.get("highlight")
    if not line or not column or not token:
        return None
    before = text.split("\n")[: line - 1]
    at = sum(len(each) + 1 for each in before) + column - len(token)  # the column is the end's
    return at if text[max(at, 0) :].startswith(token) else None


def place_of_name(text: str, reason: str, *, dialect: str) -> int | None:
    """The 0-based character where the name first stands that a reason gives."""
    from sqlglot import TokenType, tokenize
    from sqlglot.errors import TokenError

    named = _NAME.search(reason)
    if named is None:
        return None
    name = next(each for each in named.groups() if each).rpartition(".")[2].lower()
    try:
        tokens = tokenize(text, read=dialect)
    except TokenError:
        return None
    names = (each for each in tokens if each.token_type is not TokenType.STRING)
    return next((each.start for each in names if each.text.lower() == name), None)
