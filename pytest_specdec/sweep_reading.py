"""Reading `sweep` of a workload's header, and putting records and temperatures into requests.

    {"workload": {"sweep": {"in_flight": [1, 4], "context_tokens": [128], "temperature": [0, 1]}}}

Floor 0: imports only its own floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_specdec.records import records
from pytest_specdec.request_fields import Place, is_int, is_number
from pytest_specdec.sweep import Point, Sweep

PLACEHOLDER = "{records}"
"""In a prompt's messages, where its records go."""
KEYS = ("in_flight", "context_tokens", "temperature")
MAX_TEMPERATURE = 2


def read_sweep(place: Place, value: object) -> Sweep:
    """The sweep that a header asks for.

    Raises:
        WorkloadError: naming file, line and key.
    """
    given = place.check_object("workload.sweep", value)
    place.check_keys("`workload.sweep`", given, KEYS)
    if not given:
        names = ", ".join(f"`{key}`" for key in KEYS)
        raise place.refusal("`workload.sweep` is empty", hint=f"give it one of: {names}")
    for key, values in given.items():
        _check_values(place, f"workload.sweep.{key}", values, is_temperature=key == "temperature")
    return Sweep(**{key: tuple(values) for key, values in given.items()})


def _check_values(place: Place, key: str, values: object, *, is_temperature: bool) -> None:
    if not isinstance(values, list) or not values:
        raise place.wrong(key, values, "a list of at least one number")
    for each in values:
        if is_temperature and not is_number(each, 0, MAX_TEMPERATURE):
            raise place.wrong(key, each, f"numbers from 0 to {MAX_TEMPERATURE}")
        if not is_temperature and not is_int(each, least=1):
            raise place.wrong(key, each, "integers of at least 1")
    if len({*values}) < len(values):
        raise place.wrong(key, values, "numbers that are all different")


def check_records(place: Place, request: Mapping[str, Any], sweep: Sweep | None) -> None:
    """Refuses a prompt that has no place for its records, or a place and no records.

    Raises:
        WorkloadError: naming file, line and key.
    """
    has_place = any(PLACEHOLDER in each["content"] for each in request["messages"])
    has_records = sweep is not None and sweep.first_context is not None
    if has_records and not has_place:
        raise place.refusal(
            f"`workload.sweep.context_tokens` is given, and no message has `{PLACEHOLDER}`",
            hint=f"write `{PLACEHOLDER}` where the records are to stand",
        )
    if has_place and not has_records:
        raise place.refusal(
            f"a message has `{PLACEHOLDER}`, and the header says nothing of how many",
            hint='give their tokens: `"sweep": {"context_tokens": [128]}` in `workload`',
        )
    if has_records and "context_left" in request:
        raise place.refusal(
            "`context_left` and `workload.sweep.context_tokens` both say how long the prompt is",
            hint="keep one of them",
        )


def request_at(point: Point, prompt_id: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """A prompt's request as it is sent at a point of the sweep."""
    changed = dict(request)
    if point.temperature is not None:
        changed["temperature"] = point.temperature
    if point.context_tokens is not None:
        text = records(prompt_id, point.context_tokens)
        changed["messages"] = [
            {**each, "content": each["content"].replace(PLACEHOLDER, text)}
            for each in request["messages"]
        ]
    return changed
