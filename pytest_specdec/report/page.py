"""What the page shows, put in order: rows of tables, charts, sentences. Floor 4; pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_specdec.report.charts import Figure, lengths, speedups
from pytest_specdec.report.facts import ABSENT
from pytest_specdec.report.figures import decimal
from pytest_specdec.report.page_workload import workload_view
from pytest_specdec.report.page_worth_it import worth_it_view
from pytest_specdec.report.told import (
    Data,
    is_failing,
    own_test_rows,
    update_lines,
    update_rows,
)
from pytest_specdec.report.told_worth_it import remarks

KINDS = {"passed": "good", "failed": "bad", "error": "bad", "nothing ran": "warn"}
HIDDEN_SETTINGS = {"name", "root", "known_defects"}  # shown elsewhere, or of no use elsewhere
View = Mapping[str, Any]


def page(data: Data) -> View:
    """The whole page."""
    return {
        "verdict": data["verdict"],
        "kind": KINDS[data["verdict"]],
        "profiles": [_profile(each, f"p{at}") for at, each in enumerate(data["profiles"])],
    }


def _profile(data: Data, id_: str) -> View:
    workloads = [workload_view(each, f"{id_}-w{at}") for at, each in enumerate(data["workloads"])]
    return {
        "id": id_,
        "data": data,
        "name": data["profile"]["name"],
        "kind": KINDS[data["verdict"]],
        "summary": _summary(data, workloads),
        "lines": [*_lines(data)],
        "workloads": workloads,
        "worth_it": _worth_it(data, f"{id_}-worth-it"),
        "own_rows": own_test_rows(data),
        "known_rows": [*_known(data)],
        "update_rows": update_rows(data),
        "version_rows": _versions(data),
        "hardware_rows": [*_hardware(data)],
        "difference_rows": [
            (key, _value(first), _value(second))
            for key, (first, second) in data["config_differences"].items()
        ],
        "setting_rows": [
            (key, _value(value))
            for key, value in data["profile"].items()
            if key not in HIDDEN_SETTINGS
        ],
        **_lengths(data["workloads"]),
        **_speedups(data["workloads"]),
    }


def _summary(data: Data, workloads: Sequence[View]) -> str:
    """How many workloads, and what was told of them; or how many points."""
    worth_it = data["worth_it"]
    if worth_it is not None and not workloads:
        counts = Counter(each["answer"] for each in worth_it["points"])
        told = ", ".join(f"{answer}: {count}" for answer, count in counts.items())
        return f"points measured: {len(worth_it['points'])} ({told or 'none'})."
    counts = Counter(one.severity for each in workloads for one in each["told"])
    failing = sum(each["is_failing"] for each in data["workloads"])
    return (
        f"{failing} of {len(workloads)} workloads fail the build; failures: {counts['error']}, "
        f"known defects seen: {counts['warning']}, notes: {counts['note']}."
    )


def _worth_it(data: Data, id_: str) -> View | None:
    return None if data["worth_it"] is None else worth_it_view(data["worth_it"], id_)


def _lines(data: Data) -> Iterator[str]:
    if data["worth_it"] is not None:
        yield from (f"unmet: {each}" for each in data["worth_it"]["unmet"])
        yield from remarks(data["worth_it"])
    for each in data["workloads"]:
        if each["is_failing"]:
            kinds = dict.fromkeys(finding["kind"] for finding in each["findings"])
            metrics = [f"{metric} {each['verdicts'][metric]['kind']}" for metric in each["failing"]]
            yield f"{each['name']}: {', '.join([*kinds, *metrics]) or 'unexpected pass'}"
    for name, reason in data["not_run"].items():
        yield f"{name}: not run: {reason}"
    for each in filter(is_failing, data["own_tests"]):
        yield f"{each['node_id']}: {each['outcome']}"
    if data["unused"]:
        fails = " (fails the build)" if data["is_unused_failing"] else ""
        yield f"stored, but no test asked for: {', '.join(data['unused'])}{fails}"
    if data["is_changed"]:
        yield "the profile's settings are not those that the numbers were stored with"
    yield from update_lines(data)


def _known(data: Data) -> Iterator[Sequence[str]]:
    for each in data["workloads"]:
        seen = Counter(
            (one["check"], one["versions"], one["reason"]) for one in each["known_defects"]
        )
        for (check, versions, reason), count in seen.items():
            yield each["name"], check, versions, reason, f"seen: {count}"
        for one in each["unexpected_passes"]:
            yield each["name"], one["check"], one["versions"], one["reason"], "unexpected pass"
    for one in data["untested"]:
        yield one["workload"], one["check"], one["versions"], one["reason"], "no test is about it"


def _versions(data: Data) -> list[Sequence[str]]:
    return [
        (name, version or ABSENT, ", ".join(data["stored_versions"].get(name, ())) or ABSENT)
        for name, version in data["versions"].items()
    ]


def _hardware(data: Data) -> Iterator[Sequence[str]]:
    hardware = data["hardware"]
    unit = "cores" if hardware["device"] == "cpu" else "GPUs"
    yield "hardware", f"{hardware['name']}, {unit}: {hardware['count']}"
    yield from ((key, _value(value)) for key, value in hardware["facts"].items())
    for role, engine in data["engines"].items():
        started = data["num_starts"][role]
        yield f"{role} engine", f"loaded in {engine['load_s']:.1f} s; started: {started}"


def _lengths(workloads: Sequence[Data]) -> View:
    both = [(each["name"], each["figures"]["mean_acceptance_length"]) for each in workloads]
    known = [
        Figure(name=name, now=each["now"], stored=each["stored"])
        for name, each in both
        if each["now"] is not None or each["stored"] is not None
    ]
    return {
        "lengths": lengths(known) if known else None,
        "length_figures": known,
        "length_rows": [
            (each.name, decimal(each.now, 3), decimal(each.stored, 3)) for each in known
        ],
        "lengths_told": "; ".join(
            f"{each.name}: {decimal(each.now, 2)} now, {decimal(each.stored, 2)} stored"
            for each in known
        ),
    }


def _speedups(workloads: Sequence[Data]) -> View:
    known = [
        Figure(
            name=each["name"],
            now=each["verdicts"]["speedup"]["now"],
            stored=each["figures"]["speedup"]["stored"],
            # An interval from nothing to anywhere tells nothing.
            low=each["verdicts"]["speedup"]["low"] or None,
            high=each["verdicts"]["speedup"]["high"],
            floor=each["figures"]["speedup"]["floor"],
            is_interval=True,
        )
        for each in workloads
        if each["verdicts"]["speedup"]["now"] is not None
    ]
    return {
        "speedups": speedups(known) if known else None,
        "speedup_figures": known,
        "speedup_rows": [
            (
                each.name,
                *(decimal(one, 3) for one in (each.now, each.low)),
                "unbounded" if each.low and each.high is None else decimal(each.high, 3),
                *(decimal(one, 3) for one in (each.stored, each.floor)),
            )
            for each in known
        ],
        "speedups_told": "; ".join(
            f"{each.name}: {decimal(each.now, 2)}"
            + (f", from {decimal(each.low, 2)}" if each.low else "")
            + (f" to {decimal(each.high, 2)}" if each.low and each.high else "")
            + (f", {decimal(each.stored, 2)} stored" if each.stored else "")
            for each in known
        ),
    }


def _value(value: Any) -> str:
    if value is None:
        return ABSENT
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
