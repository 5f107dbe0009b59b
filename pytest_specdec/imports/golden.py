"""Reference lengths by model, mode and `num_speculative_tokens`, as InferenceX keeps them.

    deepseek-v4-pro:
      thinking_on:
        1: 1.79
        2: 2.27

YAML of these three depths alone, and comments; nothing else of YAML is read. Floor 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_specdec.imports.document import Document
from pytest_specdec.imports.fields import Fields
from pytest_specdec.imports.imported import ImportedMeasurement, completed

NAME = re.compile(r"^(?P<indent> *)(?P<name>[\w.+-]+):$")
LENGTH = re.compile(r"^ +(?P<tokens>\d{1,4}): (?P<length>\d+\.?\d*)$")
KEY = r"[\w.+-]+: *(?:#.*)?\n"
FITS = re.compile(rf"\A(?:#.*\n|\s*\n)*{KEY} +{KEY} +\d+: \d+\.?\d*\s")


def fits(document: Document) -> bool:
    """Whether it begins with a model, a mode and a length."""
    return document.rows is None and FITS.match(document.text) is not None


def read(document: Document) -> tuple[ImportedMeasurement, ...]:
    """A measurement for each length."""
    return tuple(
        completed(ImportedMeasurement(label=label, mean_acceptance_length=length), place)
        for place, label, length in _lengths(document)
    )


def _lengths(document: Document) -> Iterator[tuple[Fields, str, float]]:
    names: list[str] = []
    seen = set()
    for number, line in enumerate(document.text.splitlines(), 1):
        place = Fields(file=document.name, at=f"line {number}")
        text = line.partition("#")[0].rstrip()
        if not text:
            continue
        if (found := NAME.match(text)) is not None:
            names = [*(names[:1] if found["indent"] else []), found["name"]]
        elif (found := LENGTH.match(text)) is not None and len(names) == 2:
            label = f"{' '.join(names)} num_speculative_tokens {found['tokens']}"
            if label in seen:
                raise place.error(f"`{label}` stands there twice", hint="remove one")
            seen.add(label)
            yield place, label, float(found["length"])
        else:
            raise place.error(f"is no model, mode or length: {text!r}", hint="is the file whole?")
