"""Numbers out of what another tool wrote: each checked, and named with its place when wrong.

A key that is missing or null gives `None`, never 0. Floor 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_specdec.errors import ImportFileError

# Up to here a float tells each whole number from the next, and no counter gets there in a lifetime.
MAX_COUNT = 2**53
DAMAGED = "was the file damaged or edited? take it from its tool again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The keys of one table in a file.

    Attributes:
        file: as the user named it.
        at: where in the file the table is, such as `entry 3` or a key; empty for the file itself.
    """

    file: str
    at: str = ""
    table: Mapping[str, Any] = field(default_factory=dict)

    def error(self, fact: str, *, hint: str = DAMAGED) -> ImportFileError:
        """The error that says `fact` about this table."""
        where = f"`{self.file}`: {self.at}: " if self.at else f"`{self.file}`: "
        return ImportFileError(where + fact, hint=hint)

    def inside(self, key: str) -> Fields:
        """The table under `key`; an empty one where there is none."""
        value = self.table.get(key)
        at = f"{self.at}, `{key}`" if self.at else f"`{key}`"
        if value is not None and not isinstance(value, Mapping):
            raise self.error(f"`{key}` is not a table: {_short(value)}")
        return Fields(file=self.file, at=at, table=value or {})

    def items(self, key: str) -> tuple[Fields, ...]:
        """The tables in the list under `key`; none where there is no list."""
        value = self.table.get(key)
        if value is not None and not isinstance(value, list):
            raise self.error(f"`{key}` is not a list: {_short(value)}")
        before = f"{self.at}, " if self.at else ""
        for number, each in enumerate(value or (), 1):
            if not isinstance(each, Mapping):
                raise self.error(f"`{key}`, {number} is not a table: {_short(each)}")
        return tuple(
            Fields(file=self.file, at=f"{before}`{key}`, {number}", table=each)
            for number, each in enumerate(value or (), 1)
        )

    def number(self, key: str, *, per: float = 1.0) -> float | None:
        """A number of 0 or more, divided by `per`; `None` where there is none."""
        value = self.table.get(key)
        return None if value is None else self.checked(f"`{key}`", value) / per

    def count(self, key: str) -> int | None:
        """A whole number of 0 or more; `None` where there is none."""
        value = self.table.get(key)
        return None if value is None else self.whole(f"`{key}`", value)

    def numbers(self, key: str, *, per: float = 1.0) -> tuple[float, ...] | None:
        """A list of numbers, divided by `per`; `None` where there is none, or an empty one."""
        value = self.table.get(key)
        if value is None or value == []:
            return None
        if not isinstance(value, list):
            raise self.error(f"`{key}` is not a list: {_short(value)}")
        return tuple(
            self.checked(f"`{key}`, number {number}", each) / per
            for number, each in enumerate(value, 1)
        )

    def checked(self, name: str, value: object) -> float:
        """`value` as a finite number of 0 or more."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"{name} is not a number: {_short(value)}")
        if isinstance(value, int) and abs(value) > MAX_COUNT:
            raise self.error(f"{name} is too large: {_short(value)}")
        if not math.isfinite(value):
            raise self.error(
                f"{name} is not a finite number: {value}",
                hint="the tool measured nothing there; measure again, or remove the key",
            )
        if value < 0:
            raise self.error(f"{name} is below 0: {_short(value)}")
        return float(value)

    def whole(self, name: str, value: object) -> int:
        """`value` as a count."""
        number = self.checked(name, value)
        if number != int(number):
            raise self.error(f"{name} is not a whole number: {_short(value)}")
        if number > MAX_COUNT:
            raise self.error(f"{name} is too large: {_short(value)}")
        return int(number)


def in_order(place: Fields, by_position: Mapping[int, float]) -> tuple[float, ...] | None:
    """Figures by position as a tuple; `None` where there are none.

    Raises:
        ImportFileError: when a position is missing between them.
    """
    for position in range(len(by_position)):
        if position not in by_position:
            raise place.error(f"lacks position {position}", hint="is the file whole?")
    return tuple(by_position[position] for position in range(len(by_position))) or None


def _short(value: object) -> str:
    """A value for a message; a huge one by its beginning."""
    if isinstance(value, int) and abs(value) > MAX_COUNT:
        # Its digits may be more than Python prints.
        return f"a whole number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
