"""Recordings: what a profile's engines said to one workload, as facts, and JSON both ways.

JSON objects, one a line of the file, so that passes stream. `what` says which each is: `header`,
`workload`, then a `pass` for each pass in the order taken, `runs` with what is told of all of them,
each `retake` and all `sample_scores`, and each `control` run and `scoring` that the baseline engine
was asked for afterwards. Floor 1; files are `recording_file`'s work.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_specdec.engines.asked import Answers
from pytest_specdec.engines.protocol import EngineFacts
from pytest_specdec.generation import ROLES, Pass, Role, RunPair, TokenScore
from pytest_specdec.hardware import Hardware
from pytest_specdec.profile import Profile
from pytest_specdec.workload import Prompt, Workload

SCHEMA_VERSION = 1
Line = Mapping[str, Any]
# What both engines are told; the rest of a profile says how they are judged.
TOLD = ("device", "model", "engine_args", "speculative_config", "env")
PASSES_PER_BLOCK = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a recording is of, beside the workload.

    Attributes:
        pytest_specdec: the version of this package that wrote it.
        recorded_at: date and time, ISO 8601.
        commit: of the project whose suites ran; `None` outside version control.
        profile: its settings, as JSON has them.
        hardware: what the engines ran on.
        versions: of vLLM and what is under it.
        engines: what each loaded engine was.
        num_starts: engine starts up to there.
    """

    pytest_specdec: str
    recorded_at: str
    commit: str | None
    profile: Mapping[str, Any]
    hardware: Hardware
    versions: Mapping[str, str | None]
    engines: Mapping[Role, EngineFacts]
    num_starts: Mapping[Role, int]

    @property
    def date(self) -> str:
        """The day of the recording."""
        return self.recorded_at.partition("T")[0]

    def is_whole(self, runs: RunPair) -> bool:
        """Whether all passes were taken that the profile allowed, none left out as not needed."""
        num_passes = PASSES_PER_BLOCK * self.profile["num_blocks"]
        return (runs.num_loads, runs.passes_per_load) == (self.profile["num_loads"], num_passes)

    def to_json(self) -> Line:
        data = {
            "what": "header",
            "schema_version": SCHEMA_VERSION,
            **asdict(self),
            "hardware": {"key": self.hardware.key, **asdict(self.hardware)},
        }
        # vLLM's configuration is anything: what JSON has no number for is a word.
        line: Line = json.loads(json.dumps(data, default=str), parse_constant=str)
        return line

    @classmethod
    def from_json(cls, line: Line) -> Header:
        data = _rest(line, "schema_version")
        hardware = {key: value for key, value in data["hardware"].items() if key != "key"}
        engines = {role: EngineFacts(**facts) for role, facts in data["engines"].items()}
        return cls(**{**data, "hardware": Hardware(**hardware), "engines": engines})


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One file.

    Attributes:
        workload: as it was sent; what its answers are held to is not recorded.
        answers: what the baseline engine said when it was asked afterwards.
    """

    header: Header
    workload: Workload
    runs: RunPair
    answers: Answers

    def lines(self) -> Iterator[Line]:
        """The whole of it, in order."""
        yield self.header.to_json()
        yield {"what": "workload", **_workload_to_json(self.workload)}
        runs = self.runs.to_json()
        passes = {role: iter(runs[role]["passes"]) for role in ROLES}
        for role in self.runs.order:
            yield {"what": "pass", "role": role, "pass": next(passes[role])}
        yield {
            "what": "runs",
            **{key: runs[key] for key in ("num_loads", "conditions", "refusals")},
        }
        yield from ({"what": "retake", "retake": each} for each in runs["retakes"])
        yield {"what": "sample_scores", "sample_scores": runs["sample_scores"]}
        for (prompt_ids, concurrency), said in self.answers.controls.items():
            asked: Line = {"prompt_ids": prompt_ids, "concurrency": concurrency}
            yield {"what": "control", **asked, **_said(said)}
        for (prompt_token_ids, token_ids), told in self.answers.scores.items():
            asked = {"prompt_token_ids": prompt_token_ids, "token_ids": token_ids}
            yield {"what": "scoring", **asked, **_said(told)}

    @classmethod
    def from_lines(cls, path: Path, lines: Iterable[Line]) -> Recording:
        """Of the lines of one file; a KeyError or TypeError where they are something else."""
        told: dict[str, list[Line]] = {}
        for line in lines:
            told.setdefault(line["what"], []).append(line)
        workload = _workload_from_json(path, told["workload"][0])
        return cls(
            header=Header.from_json(told["header"][0]),
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


def profile_settings(profile: Profile) -> Mapping[str, Any]:
    """A profile as JSON has it, without the folder that its file is in."""
    data = {key: value for key, value in asdict(profile).items() if key != "root"}
    settings: Mapping[str, Any] = json.loads(json.dumps(data, default=str))
    return settings


def differences(recorded: Workload, now: Workload) -> Iterator[str]:
    """What a workload asks of the engines now that they were not asked then."""
    if recorded.concurrency != now.concurrency:
        yield f"`concurrency` was {recorded.concurrency} and is {now.concurrency}"
    was, sent = _sent(recorded), _sent(now)
    changed = [name for name in {**was, **sent} if was.get(name) != sent.get(name)]
    if changed:
        yield f"prompts were changed, added or taken out: {', '.join(changed)}"
    elif [*was] != [*sent]:
        yield "its prompts stand in another order"
    if new := [each for each in now.again if each not in recorded.again]:
        yield f"`again` names what was not tried: {', '.join(new)}"
    if now.gated and not recorded.gated:
        yield f"`gated` names {', '.join(now.gated)}, and nothing was timed"


def _sent(workload: Workload) -> dict[str, str]:
    return {
        prompt.id: json.dumps([prompt.request, prompt.is_refused], sort_keys=True)
        for prompt in workload.prompts
    }


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
        "prompts": [
            {key: getattr(prompt, key) for key in ("id", "request", "line", "is_refused")}
            for prompt in workload.prompts
        ],
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
