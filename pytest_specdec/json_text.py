"""JSON as text: read as its standard (RFC 8259) has it, shown shortened, places in it named.

Python's `json` alone accepts `NaN` and `Infinity`, keeps the last of two equal keys without a
word, and raises other exceptions for deep nesting and long numbers; here each is one `JsonError`.
Floor 0: imports nothing from the package.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NoReturn

MAX_SHOWN = 120  # characters of a value in a message


class JsonError(ValueError):
    """A text is not JSON.

    Attributes:
        fact: what is wrong, without the position.
        position: where in the text, 0-based; `None` where Python does not say.
        is_text_after_end: whether a whole JSON value came first, and more text after it.
    """

    def __init__(self, fact: str, position: int | None = None) -> None:
        super().__init__(fact)
        self.fact = fact
        self.position = position
        self.is_text_after_end = fact == "extra data"


def loads(text: str) -> Any:
    """The value `text` holds.

    Raises:
        JsonError: for anything RFC 8259 does not allow, and for two equal keys in one object.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except JsonError:
        raise
    except json.JSONDecodeError as error:
        fact = error.msg[:1].lower() + error.msg[1:].removesuffix(" starting at").removesuffix(
            " at"
        )
        raise JsonError(fact, error.pos) from None
    except RecursionError:
        raise JsonError("nested too deeply to be read") from None
    except ValueError:  # Python's limit on the digits of an integer
        raise JsonError("a number has too many digits to be read") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise JsonError(f"key `{shortened_text(key)}` stands twice in one object")
        result[key] = value
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise JsonError(f"`{name}` is not a JSON number")


def shortened(value: object) -> str:
    """The value as JSON on one line, its middle left out where it is long."""
    try:
        return shortened_text(json.dumps(value, ensure_ascii=False))
    except (RecursionError, TypeError, ValueError):
        return f"a value of type {type(value).__name__}"


def shortened_text(text: str, limit: int = MAX_SHOWN) -> str:
    """The text, its middle left out where it is longer than `limit`."""
    if len(text) <= limit:
        return text
    half = (limit - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def quoted(text: str, limit: int = MAX_SHOWN) -> str:
    """The text in quotes on one line, escapes for what is not printable, shortened."""
    return repr(shortened_text(text, limit))


def pointer(path: Iterable[str | int]) -> str:
    """A JSON pointer (RFC 6901) in backticks, or `the root`."""
    bare = bare_pointer(path)
    return f"`{bare}`" if bare else "the root"


def bare_pointer(path: Iterable[str | int]) -> str:
    """The pointer itself; empty for the root."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)
