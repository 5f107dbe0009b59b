"""However a file is damaged, it gives measurements or the one error, and never anything else."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_specdec.errors import ImportFileError
from pytest_specdec.imports.document import document_of
from pytest_specdec.imports.formats import FORMATS
from pytest_specdec.imports.imported import ImportedMeasurement
from pytest_specdec.report.action_benchmark import action_benchmark_json
from pytest_specdec.report.flat import flat_json
from pytest_specdec.report.measurements import measurements_json
from tests.imports import (
    test_aiperf,
    test_bench_json,
    test_bench_sweep,
    test_bench_text,
    test_golden,
    test_guidellm,
    test_offline,
    test_per_request,
    test_prometheus,
    test_server_log,
    test_session_report,
)
from tests.report.test_flat import RUN

HOSTILE: tuple[Any, ...] = (
    *(None, -1, 0, 1e300, 2**80, math.nan, math.inf),
    *("x", "", True, [], [None], {}, {"a": {}}),
)
VALUES: dict[str, Any] = {
    "vllm-bench-json": {**test_bench_json.PLAIN, **test_bench_json.DRAFTED},
    "vllm-bench-sweep": [test_bench_sweep.entry(1), test_bench_sweep.entry(2)],
    "per-request": test_per_request.response(test_per_request.SECOND, usage={"total_tokens": 7}),
    "offline": test_offline.ROW,
    "aiperf": {**test_aiperf.PROFILE, **test_aiperf.DRAFTED},
    "aiperf-server-metrics": test_aiperf.server_metrics(),
    "guidellm": test_guidellm.report(test_guidellm.benchmark(kind="concurrent", streams=4)),
    "measurements": json.loads(measurements_json([RUN])),
}
TEXTS = {
    "vllm-bench-text": test_bench_text.HEAD
    + test_bench_text.PLAIN
    + test_bench_text.DRAFTED
    + test_bench_text.END,
    "vllm-log": test_server_log.NEWEST + test_server_log.OF_0_9,
    "prometheus": test_prometheus.EARLY,
    "offline": test_offline.TEXT,
    "golden-acceptance": test_golden.TEXT,
}


refusals: list[str] = []


@pytest.fixture(autouse=True)
def one_clear_error() -> Iterator[None]:
    """Every refusal names the file, and says what to do."""
    refusals.clear()
    yield
    assert [each for each in refusals if not each.startswith("`file`")] == []
    assert [each for each in refusals if each.count("\nhint: ") != 1] == []


def tried(name: str, content: bytes) -> tuple[ImportedMeasurement, ...]:
    """What is read, and can then be written in every format; empty where it is refused."""
    try:
        document = document_of("file", content)
        for each in FORMATS.values():
            each.fits(document)
        runs = FORMATS[name].read(document) if FORMATS[name].fits(document) else ()
    except ImportFileError as error:
        refusals.append(str(error))
        return ()
    flat_json(runs), measurements_json(runs)
    action_benchmark_json(runs, better="bigger"), action_benchmark_json(runs, better="smaller")
    return runs


def damaged(value: Any) -> Iterator[Any]:
    """The value with each part of it replaced, one after the other, and with each key removed."""
    yield from HOSTILE
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {name: each for name, each in value.items() if name != key}
            for other in damaged(inner):
                yield {**value, key: other}
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            for other in damaged(inner):
                yield [*value[:place], other, *value[place + 1 :]]


@pytest.mark.parametrize("name", VALUES)
def test_values_of_any_kind_in_any_place(name: str) -> None:
    whole = copy.deepcopy(VALUES[name])
    assert tried(name, json.dumps(whole).encode())
    for value in damaged(whole):
        tried(name, json.dumps(value).encode())
    assert whole == VALUES[name]


def test_values_of_any_kind_in_a_session_s_report() -> None:
    data = test_session_report.report()
    workload = data["profiles"][0]["workloads"][0]
    del workload["runs"], workload["measurement"]["prompts"]
    data["profiles"][0] = {"profile": {"name": "fast"}, "workloads": [workload]}
    assert tried("session-report", json.dumps(data).encode())
    for value in damaged(data):
        tried("session-report", json.dumps(value).encode())


@pytest.mark.parametrize("name", TEXTS)
def test_text_cut_off_anywhere(name: str) -> None:
    content = TEXTS[name].encode()
    assert tried(name, content)
    for end in range(len(content)):
        tried(name, content[:end])
        tried(name, content[end:])


@pytest.mark.parametrize("name", TEXTS)
def test_text_with_any_byte_changed(name: str) -> None:
    content = TEXTS[name].encode()
    for place in range(len(content)):
        for other in (b"9", b".", b"-", b"\n", b"\xff", b"\0"):
            tried(name, content[:place] + other + content[place + 1 :])


@pytest.mark.parametrize("name", TEXTS)
def test_numbers_of_any_size(name: str) -> None:
    text = TEXTS[name]
    for digits in ("9" * 20, "9" * 400, "1" * 5000):
        tried(name, text.replace("50", digits).encode())
