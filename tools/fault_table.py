"""Writes the tables of the page on faults out of the rows and the docstrings of the fault kit.

python tools/fault_table.py            writes the file
python tools/fault_table.py --check    exit status 1 if it is out of date
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.faults.rows import DEFECTS, ERROR, FAULTS, HARMLESS, NO_FAULT, Row  # noqa: E402

PAGE = ROOT / "docs/concepts/faults.md"
KIT = ROOT / "tests" / "faults" / "src" / "specdec_faults"
# What stands above this line is written by hand.
BEGINNING = "Made by `python tools/fault_table.py` from the code; do not edit from here on.\n"
MENDED = "mended"
SENTENCE_END = re.compile(r"(?<=[.!?])\s")


def page(text: str) -> str:
    """The page with its tables made anew."""
    by_hand, found, _ = text.partition(BEGINNING)
    if not found:
        raise SystemExit(f"{PAGE.name} has lost the line that its tables follow: {BEGINNING}")
    return "\n".join([by_hand + BEGINNING, *_tables()])


def meanings() -> dict[str, str]:
    """What each fault imitates: the first sentence of the function that bears its name, or of
    those that begin with it, or else of the one that mentions it."""
    docs = [*_docstrings()]
    said: dict[str, str] = {}
    for name in {_fault(row) for row in (*FAULTS, *HARMLESS)} - {NO_FAULT, MENDED}:
        own = [text for function, text in docs if _named(function) == name]
        begun = [text for _, text in docs if text.startswith(f"`{name}`")]
        found = own or begun or [text for _, text in docs if f"`{name}`" in text]
        if not found:
            raise SystemExit(f"no docstring of the fault kit says what `{name}` imitates")
        said[name] = " ".join(map(_sentence, found))
    return said


def _docstrings() -> Iterator[tuple[str, str]]:
    """Every function of the kit that has one, by its name."""
    for path in sorted(KIT.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and (text := ast.get_docstring(node)):
                yield node.name, " ".join(text.split())


def _named(function: str) -> str:
    return function.strip("_").replace("_", "-")


def _sentence(text: str) -> str:
    """The first one, without the fault's name before it."""
    first = SENTENCE_END.split(re.sub(r"^`[^`]+`: ", "", text))[0]
    return first[0].upper() + first[1:]


def _fault(row: Row) -> str:
    """Its name in the kit."""
    return row.fault.removeprefix(f"{MENDED}+")


def _tables() -> Iterator[str]:
    said = meanings()
    yield from _table(
        ("fault", "what it imitates", "on", "must fail"),
        (
            (f"`{rows[0].fault}`", said[_fault(rows[0])], *_claims(rows))
            for rows in _by_fault(FAULTS)
        ),
    )
    yield "\nWhat the pinned vLLM's CPU build gets wrong by itself, with no fault on:\n"
    yield from _table(("on", "must fail"), ([*_claims([row])] for row in DEFECTS))
    yield "\nHarmless changes, for which nothing may fail:\n"
    yield from _table(
        ("change", "what it is", "on"),
        (_harmless(rows, said) for rows in _by_fault(HARMLESS)),
    )
    yield ""


def _by_fault(rows: Iterable[Row]) -> list[list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.fault, []).append(row)
    return [*found.values()]


def _claims(rows: Sequence[Row]) -> Iterator[str]:
    """The workloads, and what must fail on them: once, where it is the same on all."""
    yield "; ".join(map(_where, rows))
    yield "; ".join(dict.fromkeys(_names(row.fails) for row in rows))


def _harmless(rows: Sequence[Row], said: dict[str, str]) -> tuple[str, ...]:
    fault = rows[0].fault
    what = {NO_FAULT: "Nothing is changed.", MENDED: "vLLM's own defect in sampling is mended."}
    name = f"`{fault}`" if fault else "(none)"
    return name, what.get(fault) or said[fault], "; ".join(map(_where, rows))


def _where(row: Row) -> str:
    """The workload, and what else is done with it."""
    gated = "".join(f", gated on {metric}" for metric in row.gated)
    recorded = f", recorded with `{row.recorded_with}`" if row.recorded_with else ""
    again = f", again {', '.join(row.again)}" if row.again and not row.fails else ""
    return f"{row.workload}{gated}{recorded}{again}"


def _names(fails: frozenset[str]) -> str:
    return "engine error" if ERROR in fails else ", ".join(f"`{name}`" for name in sorted(fails))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def main() -> int:
    """Writes or checks the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    is_check = parser.parse_args().check
    text = PAGE.read_text(encoding="utf-8")
    if text == page(text):
        return 0
    if not is_check:
        PAGE.write_text(page(text), encoding="utf-8")
        return 0
    print(
        "docs/concepts/faults.md is out of date\nhint: python tools/fault_table.py", file=sys.stderr
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
