"""A report in which everything that people or models wrote is hostile, and every chart is drawn."""

from __future__ import annotations

import math
from typing import Any

from pytest_specdec.checks.finding import Finding
from pytest_specdec.known_defects import KnownDefect
from pytest_specdec.report.json_file import report_data
from tests.measured import counters, stored
from tests.measured import prompt as counted
from tests.measured_gains import all_of
from tests.report.reported import FACTS, own_test, profile_report, update, workload_report
from tests.said import generation, pair, prompt, walk

HOSTILE = (
    "</pre></style></script><script>alert(1)</script><img src=x onerror=alert(1)> \"' --> ]]> "
    "javascript:alert(1) `code` | a | *b* _c_ ~~d~~ [e](javascript:alert(1)) ![f](//evil.example/) "
    "@everyone #1 https://evil.example/ www.evil.example {{ 7 * 7 }} {% raw %} $g$ &amp; \\"
)
DEFECT = KnownDefect(check="identical", workload=HOSTILE, versions="<1", reason=HOSTILE)
OTHER = f"{HOSTILE} and another end"
RUNS = pair(
    [walk(generation(text=HOSTILE), generation("two"))],
    [
        walk(
            generation(token_ids=(5, 7), text=OTHER, tpot_ms=2.5),
            generation("two", tpot_ms=2.5),
            drafts=counters(),
        )
    ],
)
INVALID = Finding(
    kind="invalid JSON",
    prompt_id="two",
    facts=(HOSTILE,),
    hint=HOSTILE,
    role="speculative",
    answer=HOSTILE,
    position=HOSTILE.index("<img"),
)
VIOLATION = Finding(
    kind="schema violation", prompt_id="one", facts=(), role="baseline", answer="[]", pointer="/a|b"
)


def hostile_workload(**facts: Any) -> Any:
    return workload_report(
        HOSTILE,
        **{
            "runs": RUNS,
            "measured": {
                "prompts": (counted("one", drafts=counters()), counted("two", drafts=counters(90)))
            },
            "prompts": (
                prompt("one", messages=[{"role": "user", "content": HOSTILE}]),
                prompt("two"),
            ),
            "findings": {
                ("identical", "one"): Finding(
                    kind="divergence", prompt_id="one", facts=(HOSTILE,), hint=HOSTILE
                ),
                ("json", "two"): INVALID,
                ("json", "one"): VIOLATION,
            },
            "known": {("identical", "one"): DEFECT},
            "unseen": (DEFECT,),
            "failing": ("speedup",),
            "speedup": {
                "kind": "failed",
                "metric": "speedup",
                "now": 0.8,
                "low": 0.5,
                "high": math.inf,
                "floor": 0.9,
                "reasons": (HOSTILE,),
            },
            "stored": stored(prompts=(counted("one", drafts=counters(120)),), speedup=1.2),
            "disturbances": (HOSTILE,),
            "missing": {("again", "after-sleep"): HOSTILE},
            **facts,
        },
    )


def hostile_report(**facts: Any) -> Any:
    other = {**FACTS, "config": {"a": HOSTILE, "b": None}}
    return profile_report(
        **{
            "workloads": (hostile_workload(), workload_report("plain")),
            "engines": {"baseline": FACTS, "speculative": other},
            "versions": {"vllm": HOSTILE, "driver": None},
            "stored_versions": {"vllm": [HOSTILE]},
            "failure": HOSTILE,
            "update": update(
                path=HOSTILE,
                rows=((HOSTILE, HOSTILE, None, 0.5),),
                refused={HOSTILE: (HOSTILE,)},
            ),
            "not_run": {HOSTILE: HOSTILE},
            "unused": (HOSTILE,),
            "untested": (DEFECT,),
            "is_changed": True,
            "is_unused_failing": True,
            "worth_it": all_of(HOSTILE),
            "own_tests": (
                own_test(),
                own_test("failed", node_id=HOSTILE, workload=HOSTILE, message=HOSTILE),
            ),
            **facts,
        }
    )


def hostile_data() -> Any:
    return report_data([hostile_report()])
