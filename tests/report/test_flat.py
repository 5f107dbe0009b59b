"""Flat names: as vLLM has them, percent included, without what is not known; and read again."""

from __future__ import annotations

import json
from dataclasses import replace

from pytest_specdec.imports.imported import ImportedMeasurement, Latency
from pytest_specdec.report.flat import flat, flat_json
from pytest_specdec.report.measurements import measurements_json
from tests.imports.reading import document, read

RUN = ImportedMeasurement(
    label="fast/sql",
    num_drafts=100,
    num_draft_tokens=200,
    num_accepted_tokens=125,
    acceptance_rate=0.625,
    mean_acceptance_length=2.25,
    acceptance_rate_per_pos=(0.75, 0.5),
    num_accepted_tokens_per_pos=(75, 50),
    num_output_tokens=400,
    num_requests=20,
    concurrency=4,
    duration_s=10.0,
    output_tokens_per_s=40.0,
    ttft=Latency(mean_ms=3.0, median_ms=2.0, p99_ms=9.0),
    tpot=Latency(median_ms=1.5),
    itl=Latency(p99_ms=8.0),
    speedup=1.5,
    notes=("a note",),
)


def test_names_and_units() -> None:
    assert flat(RUN) == {
        "label": "fast/sql",
        "spec_decode_acceptance_rate": 62.5,
        "spec_decode_acceptance_length": 2.25,
        "spec_decode_num_drafts": 100,
        "spec_decode_draft_tokens": 200,
        "spec_decode_accepted_tokens": 125,
        "spec_decode_per_position_acceptance_rates": [0.75, 0.5],
        "total_output_tokens": 400,
        "completed": 20,
        "max_concurrency": 4,
        "duration": 10.0,
        "output_throughput": 40.0,
        "mean_ttft_ms": 3.0,
        "median_ttft_ms": 2.0,
        "p99_ttft_ms": 9.0,
        "median_tpot_ms": 1.5,
        "p99_itl_ms": 8.0,
        "speedup": 1.5,
    }


def test_what_is_not_known_has_no_key_and_zero_has_one() -> None:
    assert flat(ImportedMeasurement(label="x")) == {"label": "x"}
    assert flat(ImportedMeasurement(label="x", acceptance_rate=0.0, num_drafts=0)) == {
        "label": "x",
        "spec_decode_acceptance_rate": 0.0,
        "spec_decode_num_drafts": 0,
    }


def test_it_is_read_again() -> None:
    text = flat_json([RUN])
    assert text.endswith("]\n")
    again = read(document(text, name="flat.json"))
    assert again == replace(RUN, num_accepted_tokens_per_pos=None, notes=())


def test_own_names_are_read_again_whole() -> None:
    for run in (RUN, ImportedMeasurement(label="x")):
        text = measurements_json([run])
        assert read(document(text, name="m.json")) == run
    (unknown,) = json.loads(measurements_json([ImportedMeasurement(label="x")]))
    assert unknown["num_drafts"] is None
    assert unknown["ttft"] == {"mean_ms": None, "median_ms": None, "p99_ms": None}
