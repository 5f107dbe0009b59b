"""Workloads: named lists of prompts in `.jsonl` files, with OpenAI field names.

One JSON object a line. An optional first line describes the workload and gives defaults:

    {"workload": {"description": "...", "concurrency": 1}, "defaults": {"max_tokens": 96}}
    {"id": "first", "messages": [{"role": "user", "content": "..."}], "expect": {...}}

A prompt's fields are merged over `defaults`: a key of the prompt replaces the whole value of the
default. Blank lines are skipped. What a prompt declares decides which checks it gets:
`response_format` and `structured_outputs` constrain the engine, `expect` says what a valid answer
is. `gated`, `again` and `sweep` in the header say what else is done with the prompts. Floor 0:
imports only its own floor.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal, get_args

from pytest_specdec.errors import did_you_mean
from pytest_specdec.expectations import SqlExpectation, read_expectations
from pytest_specdec.json_schemas import JsonSchema
from pytest_specdec.json_text import JsonError, loads, shortened
from pytest_specdec.request_fields import (
    REQUEST_FIELDS,
    SAMPLING_FIELDS,
    Place,
    check_request,
    is_int,
)
from pytest_specdec.sweep import Point, Sweep
from pytest_specdec.sweep_reading import check_records, read_sweep, request_at

__all__ = [
    "REQUEST_FIELDS",
    "SAMPLING_FIELDS",
    "Prompt",
    "SqlExpectation",
    "Workload",
    "read_workload",
]

PROMPT_FIELDS = REQUEST_FIELDS | {"id", "expect"}
HEADER_FIELDS = frozenset({"workload", "defaults"})
WORKLOAD_FIELDS = frozenset({"description", "concurrency", "gated", "again", "sweep"})

Metric = Literal["acceptance", "speedup"]
METRICS: tuple[Metric, ...] = get_args(Metric)

CIRCUMSTANCES = (
    "warm-prefix-cache",
    "not-streamed",
    "under-preemption",
    "after-long-request",
    "after-aborts",
    "after-sleep",
)
"""What `again` may name beside `N-in-flight`: both engines answer the prompts once more under each,
and nothing may change."""

# Sampled answers that are the model's own distribution: nothing bends or bars a token, or draws it
# from numbers of the request's own.
_OWN_DISTRIBUTION = frozenset({"messages", "max_tokens", "temperature", "ignore_eos", "n"})
_IN_FLIGHT = re.compile(r"([1-9][0-9]{0,3})-in-flight")

_ID = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request, and what a valid answer to it is.

    Attributes:
        id: unique in its workload.
        request: the request body sent to the engine, OpenAI field names.
        json_schema: the JSON Schema a valid answer satisfies, or `None`. `expect.json_schema`
            declares it, or else `response_format`, whose type `json_object` means any object.
        sql: what a valid SQL answer is, or `None`.
        is_refused: whether the speculative engine must refuse the request.
        line: where it stands in its file, 1-based.
    """

    id: str
    request: Mapping[str, Any]
    json_schema: JsonSchema | None
    sql: SqlExpectation | None
    line: int
    is_refused: bool = False

    @property
    def is_constrained(self) -> bool:
        """Whether the engine is held to a grammar, so that every answer must be valid."""
        return "response_format" in self.request or "structured_outputs" in self.request

    @property
    def is_greedy(self) -> bool:
        """Whether the answer is determined, so that both engines must give the same tokens.
        A workload that says nothing of temperature means 0."""
        return not self.request.get("temperature", 0)

    @property
    def is_seeded(self) -> bool:
        """Whether a sampled answer must repeat itself."""
        return not self.is_greedy and "seed" in self.request

    @property
    def is_own_distribution(self) -> bool:
        """Whether each token is drawn from the model's own probabilities, as they are."""
        return self.request.get("temperature") == 1 and self.request.keys() <= _OWN_DISTRIBUTION


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A named list of prompts.

    Attributes:
        name: the file's name without its ending, which is the key in stored baselines; at a point
            of a sweep followed by the point, as in `sql@in_flight=4`.
        path: the file.
        description: one line for reports.
        concurrency: requests in flight; exactly this many while enough prompts are left.
        prompts: in file order; at least one.
        gated: the metrics that may fail the build, of those that the profile gates. Without any,
            each engine answers once and nothing is timed.
        again: circumstances under which the prompts are answered once more.
        sweep: other loads, contexts and temperatures that its header names; `None` without.
        point: where in its sweep this is; `None` for the workload as it is.
        as_written: the prompts as the file has them, where that is not how they are sent: with a
            placeholder for records.
    """

    name: str
    path: Path
    description: str
    concurrency: int
    prompts: tuple[Prompt, ...]
    gated: tuple[Metric, ...] = METRICS
    again: tuple[str, ...] = ()
    sweep: Sweep | None = None
    point: Point | None = None
    as_written: tuple[Prompt, ...] = ()

    @property
    def base_name(self) -> str:
        """Its name without the point."""
        return self.name if self.point is None else self.name.removesuffix(f"@{self.point.name}")

    @property
    def has_points(self) -> bool:
        """Whether it is asked of it where speculation pays: it has a sweep, or a speedup that is
        gated."""
        return self.sweep is not None or "speedup" in self.gated

    @property
    def points(self) -> tuple[Point, ...]:
        """All of its sweep; without one its own load alone."""
        return (self.sweep or Sweep()).points(concurrency=self.concurrency)

    @property
    def own_point(self) -> Point:
        """That of its points which is nearest to the workload as it is: its own load and
        temperature, where they are among them, else the first ones; and the first context."""
        own = {each.request.get("temperature", 0) for each in self.asked}

        def distance(point: Point) -> tuple[bool, bool]:
            is_own_temperature = point.temperature is None or own == {point.temperature}
            return not is_own_temperature, point.in_flight != self.concurrency

        return min(self.points, key=distance)  # the first of several

    def at(self, point: Point) -> Workload:
        """The workload at a point of its sweep, which is there to be timed: nothing is tried
        beside it."""
        return replace(
            self,
            name=f"{self.base_name}@{point.name}",
            concurrency=point.in_flight,
            prompts=_sent_at(point, [each for each in self._written if not each.is_refused]),
            gated=("speedup",),
            again=(),
            point=point,
            as_written=self._written,
        )

    @property
    def _written(self) -> tuple[Prompt, ...]:
        return self.as_written or self.prompts

    @property
    def asked(self) -> tuple[Prompt, ...]:
        """The prompts that are answered: all but those to be refused."""
        return tuple(prompt for prompt in self.prompts if not prompt.is_refused)

    def concurrency_in(self, circumstance: str) -> int:
        """Requests in flight under a circumstance."""
        match = _IN_FLIGHT.fullmatch(circumstance)
        return self.concurrency if match is None else int(match[1])

    @property
    def digest(self) -> str:
        """SHA-256 over everything sent to the engine: equal digests are comparable numbers."""
        sent = [self.concurrency, [[prompt.id, prompt.request] for prompt in self.asked]]
        return hashlib.sha256(json.dumps(sent, sort_keys=True).encode()).hexdigest()

    def prompt(self, prompt_id: str) -> Prompt:
        """The prompt of that id. Raises KeyError if there is none."""
        for prompt in self.prompts:
            if prompt.id == prompt_id:
                return prompt
        raise KeyError(prompt_id)


def read_workload(path: Path) -> Workload:
    """Reads and checks one `.jsonl` workload; what each check refuses is in its message.

    Raises:
        WorkloadError: naming file, line and key.
    """
    objects = _read_objects(path)
    top = Place(path=path, line=1)
    header: Mapping[str, Any] = {}
    if objects and HEADER_FIELDS & objects[0][1].keys():
        top, header = objects.pop(0)
        _check_header(top, header)
    if not objects:
        raise Place(path=path, line=1).refusal(
            "the workload holds no prompt", hint='add a line `{"id": ..., "messages": [...]}`'
        )
    about = header.get("workload", {})
    sweep = read_sweep(top, about["sweep"]) if "sweep" in about else None
    prompts: dict[str, Prompt] = {}
    for place, fields in objects:
        prompt = _read_prompt(place, fields, header.get("defaults", {}))
        check_records(place, prompt.request, sweep)
        if prompt.id in prompts:
            raise place.refusal(
                f"`id` is taken: `{prompt.id}`",
                hint=f"line {prompts[prompt.id].line} has it; an id names one prompt",
            )
        prompts[prompt.id] = prompt
    if all(prompt.is_refused for prompt in prompts.values()):
        raise objects[0][0].refusal(
            "the workload holds no prompt that is answered",
            hint="put the prompts that are to be refused beside others",
        )
    workload = Workload(
        name=path.stem,
        path=path,
        description=about.get("description", ""),
        concurrency=about.get("concurrency", 1),
        prompts=tuple(prompts.values()),
        gated=tuple(about.get("gated", METRICS)),
        again=tuple(about.get("again", ())),
        sweep=sweep,
    )
    _check_in_flight(top, workload)
    return workload if sweep is None else _swept(workload, sweep)


def _swept(workload: Workload, sweep: Sweep) -> Workload:
    """As it is sent without a sweep: with the first of its contexts."""
    for prompt in workload.asked:
        for temperature in sweep.temperature:
            where = Place(path=workload.path, line=prompt.line)
            check_request(where, {**prompt.request, "temperature": temperature})
    if sweep.first_context is None:
        return workload
    first = Point(in_flight=1, context_tokens=sweep.first_context)
    prompts = _sent_at(first, workload.prompts)
    return replace(workload, prompts=prompts, as_written=workload.prompts)


def _sent_at(point: Point, prompts: Sequence[Prompt]) -> tuple[Prompt, ...]:
    """All prompts as they are at a point. Where they are fewer than its load some are sent again,
    as `id~2`, which is no prompt's own id."""
    number = max(point.in_flight, len(prompts))
    copies = (
        replace(each, id=f"{each.id}~{copy}") if copy > 1 else each
        for copy in count(1)
        for each in prompts
    )
    return tuple(
        replace(each, request=request_at(point, each.id, each.request))
        for each in islice(copies, number)
    )


def _read_objects(path: Path) -> list[tuple[Place, Mapping[str, Any]]]:
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise Place(path=path, line=1).refusal(f"the file cannot be read: {reason}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise Place(path=path, line=line).refusal(
            f"not UTF-8, at byte {error.start}: {error.object[error.start]:#04x}",
            hint="save the file as UTF-8",
        ) from None
    objects = []
    for number, row in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if row.strip():
            place = Place(path=path, line=number)
            objects.append((place, _read_object(place, row)))
    return objects


def _read_object(place: Place, line: str) -> Mapping[str, Any]:
    try:
        value = loads(line)
    except JsonError as error:
        column = "" if error.position is None else f" at column {error.position + 1}"
        raise place.refusal(
            f"not JSON{column}: {error.fact}", hint="one JSON object stands on each line"
        ) from None
    if not isinstance(value, Mapping):
        raise place.refusal(f"not a JSON object: {shortened(value)}", hint="one prompt a line")
    return value


def _check_header(place: Place, header: Mapping[str, Any]) -> None:
    place.check_keys("the header", header, HEADER_FIELDS)
    about = place.check_object("workload", header.get("workload", {}))
    place.check_keys("`workload`", about, WORKLOAD_FIELDS)
    if not isinstance(about.get("description", ""), str):
        raise place.wrong("workload.description", about["description"], "a string")
    if not is_int(about.get("concurrency", 1), least=1):
        raise place.wrong("workload.concurrency", about["concurrency"], "an integer of at least 1")
    _check_names(place, "gated", about.get("gated", []), known=METRICS)
    again = about.get("again", [])
    _check_names(place, "again", again, known=CIRCUMSTANCES, pattern=_IN_FLIGHT)
    defaults = place.check_object("defaults", header.get("defaults", {}))
    place.check_keys("`defaults`", defaults, PROMPT_FIELDS - {"id"})


def _check_in_flight(place: Place, workload: Workload) -> None:
    """Refuses a circumstance under which as many are in flight as without it: nothing is tried."""
    num_prompts = len(workload.asked)
    without = min(workload.concurrency, num_prompts)
    for name in workload.again:
        within = min(workload.concurrency_in(name), num_prompts)
        if _IN_FLIGHT.fullmatch(name) and within == without:
            raise place.refusal(
                f"`{name}` of `workload.again` changes nothing: with `concurrency` "
                f"{workload.concurrency} and {num_prompts} prompts, {without} are in flight "
                "either way",
                hint="name another number, another `concurrency`, or more prompts",
            )


def _check_names(
    place: Place,
    key: str,
    value: object,
    *,
    known: tuple[str, ...],
    pattern: re.Pattern[str] | None = None,
) -> None:
    """Refuses what is no list of distinct known names."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise place.wrong(f"workload.{key}", value, "a list of names")
    for each in value:
        if each not in known and not (pattern and pattern.fullmatch(each)):
            names = (*known, "8-in-flight") if pattern else known
            raise place.refusal(
                f"unknown name in `workload.{key}`: `{each}`", hint=did_you_mean(each, names)
            )
    if len({*value}) < len(value):
        raise place.wrong(f"workload.{key}", value, "names that are all different")


def _read_prompt(place: Place, own: Mapping[str, Any], defaults: Mapping[str, Any]) -> Prompt:
    if HEADER_FIELDS & own.keys():
        raise place.refusal("a header after the first line", hint="one header, before all prompts")
    place.check_keys("the prompt", own, PROMPT_FIELDS)
    prompt_id = own.get("id")
    if not isinstance(prompt_id, str) or not _ID.fullmatch(prompt_id):
        raise place.refusal(
            "`id` is missing" if prompt_id is None else f"`id` is no name: {shortened(prompt_id)}",
            hint="letters, digits, `.`, `_` and `-`: the id is part of the test's name",
        )
    fields = {**defaults, **own}
    request = {key: value for key, value in fields.items() if key in REQUEST_FIELDS}
    check_request(place, request)
    json_schema, sql = read_expectations(place, request, fields.get("expect", {}))
    return Prompt(
        id=prompt_id,
        request=request,
        json_schema=json_schema,
        sql=sql,
        line=place.line,
        is_refused=bool(fields.get("expect", {}).get("refused")),
    )
