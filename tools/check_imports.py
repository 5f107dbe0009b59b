"""Imports every file of a folder of public samples, and compares with the numbers that it has.

    python tools/check_imports.py ../shared/data/vllm_outputs

Beside the files lie the numbers that they must give:

    prometheus/EXPECTED.json         by scrape; `NAME delta c2-c1` is the growth from
                                     `NAME_after_c1.prom` to `NAME_after_c2.prom`
    log_formats/generations.jsonl    a `line` of a log a row, with what to `expect` of it
    per_request/samples.jsonl        a request a row, with figures that it tells of itself

Every other file is imported whole or refused, and its one line says which. What a file tells of
itself is checked by importing: an import refuses figures that disagree.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_specdec.errors import ImportFileError
from pytest_specdec.imports.document import document_of
from pytest_specdec.imports.formats import FORMATS, format_of, import_file
from pytest_specdec.imports.imported import ImportedMeasurement

# The samples' words for ours, and how far rounded figures may be off.
WORDS = {
    "drafts": ("num_drafts", 0),
    "total_drafts": ("num_drafts", 0),
    "draft_tokens": ("num_draft_tokens", 0),
    "drafted": ("num_draft_tokens", 0),
    "accepted": ("num_accepted_tokens", 0),
    "acceptance_rate": ("acceptance_rate", 0.00051),
    "acceptance_length": ("mean_acceptance_length", 0.000051),
    "mean_acceptance_length": ("mean_acceptance_length", 0.0051),
    "per_pos": ("acceptance_rate_per_pos", 0.00051),
}
DELTA = " delta c2-c1"


def main(arguments: list[str]) -> int:
    """Prints a line a file and a comparison; 1 where one disagrees."""
    parser = argparse.ArgumentParser(description="import public samples and compare")
    parser.add_argument("data", type=Path, help="the folder of the samples")
    folder: Path = parser.parse_args(arguments).data
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    if not paths:
        print(f"no files in {folder}\nhint: the docstring of this program says what is looked for")
        return 2
    for path in paths:
        print(f"{path.relative_to(folder)}: {outcome(path)}")
    disagreements = 0
    for name, told in comparisons(folder):
        print(f"{name}: {told or 'agrees'}")
        disagreements += bool(told)
    return 1 if disagreements else 0


def outcome(path: Path) -> str:
    """What importing one file gives, in a line."""
    try:
        runs = import_file(path)
    except ImportFileError as error:
        return "refused: " + str(error).splitlines()[0].replace(str(path), path.name)
    rates = [run for run in runs if run.mean_acceptance_length is not None]
    return f"measurements: {len(runs)}, with a mean acceptance length: {len(rates)}"


def comparisons(folder: Path) -> Iterator[tuple[str, str]]:
    """Each sample with expected numbers, and what disagrees; empty where nothing does."""
    scrapes = folder / "prometheus"
    for path in scrapes.glob("EXPECTED.json"):
        for name, expected in json.loads(path.read_text(encoding="utf-8")).items():
            yield f"prometheus: {name}", difference(_scraped(scrapes, name), expected)
    for path in folder.glob("log_formats/generations.jsonl"):
        for number, row in enumerate(_rows(path), 1):
            yield f"log line {number}: {row['gen']}", _of_line(row["line"], row["expect"])
    for path in folder.glob("per_request/samples.jsonl"):
        for number, row in enumerate(_rows(path), 1):
            told = row["metrics"]["speculative_decoding"]
            document = document_of(path.name, json.dumps(row).encode())
            (run,) = format_of(document).read(document)
            yield f"request {number}", difference(run, {"drafts": told["num_spec_steps"]})


def _scraped(folder: Path, name: str) -> ImportedMeasurement:
    if name.endswith(DELTA):
        base = name.removesuffix(DELTA)
        after, before = (folder / f"{base}_after_c{number}.prom" for number in (2, 1))
        return import_file(after, before=before)[0]
    return import_file(folder / f"{name}.prom")[0]


def _of_line(line: str, expected: Mapping[str, Any] | None) -> str:
    document = document_of("line", line.encode())
    log = FORMATS["vllm-log"]
    if expected is None or not log.fits(document):
        return "" if expected is None and not log.fits(document) else "is no line of such metrics"
    (run,) = log.read(document)
    return difference(run, expected)


def difference(run: ImportedMeasurement, expected: Mapping[str, Any]) -> str:
    """The figures that are not the expected ones; empty where all are."""
    told = []
    for word, value in expected.items():
        if word not in WORDS:
            continue  # such as the source
        name, tolerance = WORDS[word]
        here = getattr(run, name)
        if not _is_near(here, value, tolerance):
            told.append(f"{name} is {here}, expected {value}")
    return "; ".join(told)


def _is_near(here: Any, expected: Any, tolerance: float) -> bool:
    if isinstance(expected, list):
        pairs = zip(here or (), expected, strict=False)
        return len(here or ()) == len(expected) and all(
            _is_near(one, other, tolerance) for one, other in pairs
        )
    return here is not None and abs(here - expected) <= tolerance


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
