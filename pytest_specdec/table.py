"""Frozen dataclasses out of TOML tables, every key and value checked and named when wrong.

The dataclass is the schema: its field types say what a value is, `metadata` what range it has
(`min`, `max`) and what it means (`help`, read by the reference in docs/). Floor 0.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pytest_specdec.errors import ConfigError, did_you_mean

T = TypeVar("T")
WORDS = {str: "a string", float: "a number", int: "a whole number", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class Place:
    """A table in a file, by its dotted key; all messages about it start here."""

    file: str
    keys: tuple[str, ...] = ()

    def at(self, key: str) -> Place:
        return Place(self.file, (*self.keys, key))

    def error(self, fact: str, *, hint: str | None = None) -> ConfigError:
        """The error that says `fact` about this place."""
        return ConfigError(f"`{self.file}`: `{'.'.join(self.keys)}` {fact}", hint=hint)

    def refuse_unknown(self, table: Mapping[str, Any], known: Collection[str]) -> None:
        for key in table:
            if key not in known:
                raise self.at(key).error("is not a known key", hint=did_you_mean(key, known))

    def table(self, value: Any) -> dict[str, Any]:
        """`value`, which must be a table."""
        if not isinstance(value, dict):
            raise self.error(f"is not a table: {value!r}")
        return value

    def build(self, cls: type[T], value: Any, **given: Any) -> T:
        """An instance of the dataclass `cls`; `given` are fields that no key sets.

        Raises:
            ConfigError: for a key that is unknown or missing, or a value of the wrong type or
                out of range.
        """
        table = self.table(value)
        fields = {each.name: each for each in dataclasses.fields(cls) if each.name not in given}  # type: ignore[arg-type]
        hints = get_type_hints(cls)
        self.refuse_unknown(table, fields)
        for name, each in fields.items():
            if name not in table and each.default is MISSING and each.default_factory is MISSING:
                raise self.error(f"lacks `{name}`: {each.metadata['help']}")
        checked = {
            name: self.at(name).checked(hints[name], fields[name], table[name]) for name in table
        }
        return cls(**given, **checked)

    def checked(self, hint: Any, field: Field[Any], value: Any) -> Any:
        """`value` as the field's type, within the field's range."""
        value = self.typed(hint, value)
        if isinstance(value, float) and not math.isfinite(value):
            raise self.error(f"is not a finite number: {value!r}")
        low, high = field.metadata.get("min"), field.metadata.get("max")
        if low is not None and value < low:
            raise self.error(f"is below {low:g}: {value!r}")
        if high is not None and value > high:
            raise self.error(f"is above {high:g}: {value!r}")
        return value

    def typed(self, hint: Any, value: Any) -> Any:
        """`value` as the type `hint`."""
        if dataclasses.is_dataclass(hint):
            return self.build(hint, value)  # type: ignore[arg-type]
        origin = get_origin(hint)
        if origin in (Union, types.UnionType):
            # `X | None`: TOML has no null, so a present key is an X.
            return self.typed(next(arg for arg in get_args(hint) if arg is not type(None)), value)
        if origin is Literal:
            if value not in get_args(hint):
                hint_text = did_you_mean(str(value), get_args(hint))
                raise self.error(f"is not one of its values: {value!r}", hint=hint_text)
            return value
        if origin is tuple:
            return self._list(get_args(hint)[0], value)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            of = get_args(hint)[1]
            return {
                key: each if of is Any else self.at(key).typed(of, each)
                for key, each in self.table(value).items()
            }
        return self._scalar(hint, value)

    def _list(self, of: Any, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise self.error(f"is not a list: {value!r}")
        if not dataclasses.is_dataclass(of):
            return tuple(self.typed(of, each) for each in value)
        # Tables have keys that messages name, so their number in the list is a key too.
        return tuple(self.at(str(number)).typed(of, each) for number, each in enumerate(value))

    def _scalar(self, kind: type, value: Any) -> Any:
        # A bool is an int to Python, and a whole number is a fine float to a person.
        accepted = (int, float) if kind is float else kind
        if not isinstance(value, accepted) or (kind is not bool and isinstance(value, bool)):
            raise self.error(f"is not {WORDS[kind]}: {value!r}")
        return value
