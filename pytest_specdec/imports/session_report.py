"""This plugin's own `report.json`: the speculative engine's run of each workload of each profile,
and each point of a session that asks whether speculation is worth it.

Floor 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from statistics import fmean

from pytest_specdec.imports.document import Document
from pytest_specdec.imports.fields import Fields
from pytest_specdec.imports.imported import ImportedMeasurement, Latency, completed, counted
from pytest_specdec.sweep import Point

SCHEMA_VERSIONS = (1, 2, 3, 4)  # what is read here is the same in all


def fits(document: Document) -> bool:
    """Whether it is a session's report."""
    table = document.table
    return isinstance(table.get("profiles"), list) and "schema_version" in table


def read(document: Document) -> tuple[ImportedMeasurement, ...]:
    """A measurement for each workload and each point of each profile."""
    whole = Fields(file=document.name, table=document.table)
    version = whole.table["schema_version"]
    if version not in SCHEMA_VERSIONS:
        known = ", ".join(map(str, SCHEMA_VERSIONS))
        raise whole.error(
            f"`schema_version` is {version!r}, and known here: {known}",
            hint="install the pytest-specdec that wrote it",
        )
    measurements = tuple(_workloads(whole))
    if not measurements:
        raise whole.error("holds no workload", hint="did the session run any?")
    return measurements


def _workloads(whole: Fields) -> Iterator[ImportedMeasurement]:
    for profile in whole.items("profiles"):
        name = profile.inside("profile").table.get("name")
        for workload in profile.items("workloads"):
            yield _measurement(workload, label=f"{name}/{workload.table.get('name')}")
        for point in profile.inside("worth_it").items("points"):
            yield _gained(point, profile=name)


def _measurement(workload: Fields, *, label: str) -> ImportedMeasurement:
    measurement = workload.inside("measurement")
    drafts, engine = measurement.inside("drafts"), measurement.inside("speculative")
    told = replace(
        counted(drafts, label=label),
        num_output_tokens=engine.count("num_output_tokens"),
        concurrency=measurement.count("concurrency"),
        ttft=Latency(median_ms=engine.number("ttft_ms")),
        tpot=Latency(median_ms=engine.number("tpot_ms")),
        speedup=_speedup(measurement.inside("speedup")),
    )
    return completed(told, measurement)


def _gained(point: Fields, *, profile: object) -> ImportedMeasurement:
    """Of one point, with its place in the label as in its test's name, and what differs from the
    profile."""
    place = point.inside("point")
    swept = Point(
        in_flight=place.count("in_flight") or 1,
        context_tokens=place.count("context_tokens"),
        temperature=place.number("temperature"),
    )
    changes = [f"{key} {value}" for key, value in point.inside("changes").table.items()]
    name = f"{profile}/{point.table.get('workload')}[{swept.name}]"
    told = ImportedMeasurement(
        label=" ".join(filter(None, [name, ", ".join(changes)])),
        acceptance_rate=point.number("acceptance_rate"),
        mean_acceptance_length=point.number("mean_acceptance_length"),
        concurrency=swept.in_flight,
        speedup=point.number("gain"),
    )
    return completed(told, point)


def _speedup(speedup: Fields) -> float | None:
    """The geometric mean over the pairs of passes of all loads."""
    loads = speedup.table.get("loads") or ()
    try:
        log_ratios = [float(each) for each in chain.from_iterable(loads)]
        return math.exp(fmean(log_ratios)) if log_ratios else None
    except (TypeError, ValueError, OverflowError):
        raise speedup.error(f"`loads` are no lists of numbers: {loads!r}") from None
