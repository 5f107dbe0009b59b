"""Reports for tests of what is printed, every part settable by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_specdec.assessment import Assessment
from pytest_specdec.baseline_update import DiffRow
from pytest_specdec.checks.finding import Finding
from pytest_specdec.engines.protocol import EngineFacts
from pytest_specdec.floors import Line
from pytest_specdec.hardware import Hardware
from pytest_specdec.profile import Profile
from pytest_specdec.report.facts import OwnOutcome, OwnTest, ProfileReport, Update, WorkloadReport
from pytest_specdec.report.summary import summary_lines
from pytest_specdec.verdict import Verdict
from pytest_specdec.workload import METRICS, Prompt, Workload
from tests.measured import COUNTERS, measurement
from tests.said import generation, pair, walk

FINDING = Finding(kind="divergence", prompt_id="one", facts=("a fact",), hint="a hint")
TIE = Finding(kind="near tie", prompt_id="two", facts=("a fact",))
FACTS: Mapping[str, Any] = {"versions": {}, "load_s": 2.5, "config": {"a": 1, "b": None}}
BOTH = pair(*([walk(generation(), generation("two"))] for _ in range(2)))
RATE: Mapping[str, Any] = {"now": 0.5, "stored": 0.5, "floor": 0.475}


def verdict(**facts: Any) -> dict[str, Any]:
    return {"kind": "passed", "metric": "acceptance rate", "workload": "sql", **facts}


def workload_report(name: str = "sql", **facts: Any) -> WorkloadReport:
    """By default all passed: 3 greedy prompts, 2 of them checked."""
    prompt = Prompt(id="one", request={}, json_schema=None, sql=None, line=1)
    rate = facts.get("rate", RATE)
    return WorkloadReport(
        assessment=Assessment(
            workload=Workload(
                name=name,
                path=Path(f"{name}.jsonl"),
                description="about",
                concurrency=1,
                prompts=facts.get("prompts", (prompt,)),
                gated=facts.get("timed", METRICS),
            ),
            runs=facts.get("runs", BOTH),
            measurement=measurement(
                drafts=facts.get("drafts", COUNTERS), **facts.get("measured", {})
            ),
            findings=facts.get("findings", {}),
            near_ties=facts.get("near_ties", {}),
            missing=facts.get("missing", {}),
            num_greedy=facts.get("num_greedy", 3),
            num_checked=facts.get("num_checked", 2),
            num_valid=facts.get("num_valid", {"baseline": 2, "speculative": 2}),
        ),
        verdicts={metric: Verdict(**verdict(**facts.get(metric, {}))) for metric in METRICS},
        gated=facts.get("gated", METRICS),
        rate=None
        if rate is None
        else Line(metric="acceptance rate", origin=None, minimum=None, **rate),
        is_stored_now=facts.get("is_stored_now", False),
        known=facts.get("known", {}),
        unseen=facts.get("unseen", ()),
        disturbances=facts.get("disturbances", ()),
        stored=facts.get("stored"),
        failing=facts.get("failing", ()),
        not_stored=facts.get("not_stored", ()),
    )


def profile_report(**facts: Any) -> ProfileReport:
    engines = facts.get("engines", {"baseline": FACTS, "speculative": FACTS})
    return ProfileReport(
        profile=Profile(
            name="fast",
            root=Path(),
            device="cpu",
            model="org/target",
            speculative_config={"method": "ngram"},
        ),
        hardware=Hardware(
            device="cpu", name="A CPU", count=2, facts={"cores": 2, "instruction_set": "avx2"}
        ),
        versions=facts.get("versions", {"vllm": "0.32.0"}),
        stored_versions=facts.get("stored_versions", {}),
        engines={role: EngineFacts(**each) for role, each in engines.items()},
        num_starts={"baseline": 1, "speculative": 1},
        failure=facts.get("failure"),
        is_changed=facts.get("is_changed", False),
        workloads=facts.get("workloads", (workload_report(),)),
        unused=facts.get("unused", ()),
        untested=facts.get("untested", ()),
        update=facts.get("update"),
        not_run=facts.get("not_run", {}),
        is_unused_failing=facts.get("is_unused_failing", False),
        own_tests=facts.get("own_tests", ()),
        worth_it=facts.get("worth_it"),
    )


def own_test(outcome: OwnOutcome = "passed", **facts: Any) -> OwnTest:
    return OwnTest(
        **{"node_id": "test_a.py::test_b[fast]", "workload": "sql", "message": None, **facts},
        outcome=outcome,
    )


def update(
    *,
    path: str | None,
    rows: Sequence[tuple[str, str, float | None, float | None]],
    refused: Mapping[str, Sequence[str]],
) -> Update:
    return Update(
        path=path,
        rows=[
            DiffRow(workload=workload, metric=metric, old=old, new=new)
            for workload, metric, old, new in rows
        ],
        refused=refused,
    )


def row_of(facts: Mapping[str, Any]) -> dict[str, str]:
    """The cells of the one workload's row, by the first words of their columns."""
    header, row, *_ = summary_lines(profile_report(workloads=(workload_report(**facts),)))
    starts = [each.start() for each in re.finditer(r"(?:(?<=  )|^)\S", header)]
    ends = [*starts[1:], None]
    names = [
        header[start:end].strip().removesuffix(" now / stored / floor")
        for start, end in zip(starts, ends, strict=True)
    ]
    cells = [row[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    return dict(zip(names, cells, strict=True))
