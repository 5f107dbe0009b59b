"""Recordings as JSON objects, one a line of the file, so that passes stream; both ways.

`what` says which each is: `header`, `workload`, then a `pass` for each pass in the order taken,
`runs` with what is told of all of them, each `retake` and all `sample_scores`, and each `control`
run and `scoring` that the baseline engine was asked for afterwards. Floor 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pytest_specdec.engines.asked import Answers
from pytest_specdec.engines.protocol import EngineFacts
from pytest_specdec.generation import ROLES, Pass, RunPair, TokenScore
from pytest_specdec.hardware import Hardware
from pytest_specdec.recording import Header, Recording
from pytest_specdec.workload import Prompt, Workload

SCHEMA_VERSION = 1
Line = Mapping[str, Any]
ABOUT_ALL = ("num_loads", "conditions", "refusals")
AS_SENT = ("id", "request", "line", "is_refused")


def lines_of(recording: Recording) -> Iterator[Line]:
    """The whole of it, in order."""
    yield _header_to_json(recording.header)
    yield {"what": "workload", **_workload_to_json(recording.workload)}
    runs = recording.runs.to_json()
    passes = {role: iter(runs[role]["passes"]) for role in ROLES}
    for role in recording.runs.order:
        yield {"what": "pass", "role": role, "pass": next(passes[role])}
    yield {"what": "runs", **{key: runs[key] for key in ABOUT_ALL}}
    yield from ({"what": "retake", "retake": each} for each in runs["retakes"])
    yield {"what": "sample_scores", "sample_scores": runs["sample_scores"]}
    for (prompt_ids, concurrency), said in recording.answers.controls.items():
        asked: Line = {"prompt_ids": prompt_ids, "concurrency": concurrency}
        yield {"what": "control", **asked, **_said(said)}
    for (prompt_token_ids, token_ids), told in recording.answers.scores.items():
        asked = {"prompt_token_ids": prompt_token_ids, "token_ids": token_ids}
        yield {"what": "scoring", **asked, **_said(told)}


def recording_of(path: Path, lines: Iterable[Line]) -> Recording:
    """Of the lines of one file; what is none of `lines_of` raises some error or other."""
    told: dict[str, list[Line]] = {}
    for line in lines:
        told.setdefault(line["what"], []).append(line)
    workload = _workload_from_json(path, told["workload"][0])
    return Recording(
        header=header_from_json(told["header"][0]),
        workload=workload,
        runs=_runs(workload.name, told),
        answers=Answers(
            controls={
                (tuple(line["prompt_ids"]), line["concurrency"]): line.get("refused")
                or Pass.from_json(line["said"])
                for line in told.get("control", ())
            },
            scores={
                (tuple(line["prompt_token_ids"]), tuple(line["token_ids"])): line.get("refused")
                or tuple(map(TokenScore.from_json, line["said"]))
                for line in told.get("scoring", ())
            },
        ),
    )


def header_from_json(line: Line) -> Header:
    """Of a file's first line."""
    data = _rest(line, "schema_version")
    facts = {key: value for key, value in data["hardware"].items() if key != "key"}
    hardware = Hardware(**facts)
    hardware.key  # noqa: B018  # made of its facts: what it lacks is told here
    engines = {role: EngineFacts(**facts) for role, facts in data["engines"].items()}
    return Header(**{**data, "hardware": hardware, "engines": engines})


def _header_to_json(header: Header) -> Line:
    data = {
        "what": "header",
        "schema_version": SCHEMA_VERSION,
        **asdict(header),
        "hardware": {"key": header.hardware.key, **asdict(header.hardware)},
    }
    # vLLM's configuration is anything: what JSON has no number for is a word.
    line: Line = json.loads(json.dumps(data, default=str), parse_constant=str)
    return line


def _rest(line: Line, *others: str) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in ("what", *others)}


def _said(answer: Pass | tuple[TokenScore, ...] | str) -> Line:
    if isinstance(answer, str):
        return {"refused": answer}
    if isinstance(answer, Pass):
        return {"said": answer.to_json()}
    return {"said": [each.to_json() for each in answer]}


def _runs(name: str, told: Mapping[str, list[Line]]) -> RunPair:
    passes = [(line["role"], line["pass"]) for line in told["pass"]]
    runs: dict[str, Line] = {
        role: {"role": role, "workload": name, "passes": [own for by, own in passes if by == role]}
        for role in ROLES
    }
    return RunPair.from_json(
        {
            **runs,
            **_rest(told["runs"][0]),
            "order": [role for role, _ in passes],
            "retakes": [line["retake"] for line in told.get("retake", ())],
            "sample_scores": told["sample_scores"][0]["sample_scores"],
        }
    )


def _workload_to_json(workload: Workload) -> Line:
    return {
        "name": workload.name,
        "digest": workload.digest,
        "description": workload.description,
        "concurrency": workload.concurrency,
        "gated": workload.gated,
        "again": workload.again,
        "prompts": [{key: getattr(prompt, key) for key in AS_SENT} for prompt in workload.prompts],
    }


def _workload_from_json(path: Path, line: Line) -> Workload:
    return Workload(
        **{
            **_rest(line, "digest"),
            "path": path,
            "gated": tuple(line["gated"]),
            "again": tuple(line["again"]),
            "prompts": tuple(
                Prompt(**prompt, json_schema=None, sql=None) for prompt in line["prompts"]
            ),
        }
    )
