"""The family: all gated figures of one profile, judged together.

Each figure has some chance to be called fallen by mistake, and a build fails for any of them. So
the profile's `false_alarms` is shared out among them all by Holm's procedure: whoever gates more
figures asks more of each. Floor 3; pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pytest_specdec.floors import Rules
from pytest_specdec.judge_acceptance import judge_acceptance
from pytest_specdec.judge_speedup import judge_speedup
from pytest_specdec.measurement import Measurement
from pytest_specdec.statistics import holm
from pytest_specdec.stored_baseline import StoredWorkload
from pytest_specdec.verdict import Verdict
from pytest_specdec.workload import METRICS, Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One workload to be judged.

    Attributes:
        gated: the metrics that can fail the build; the others are judged as strictly, and their
            verdicts are information.
        rules: at any level; the family sets its own.
    """

    measurement: Measurement
    stored: StoredWorkload | None
    rules: Rules
    gated: tuple[Metric, ...] = METRICS

    def verdict(self, metric: Metric, level: float) -> Verdict:
        """On one metric, held to that level."""
        judge = judge_acceptance if metric == "acceptance" else judge_speedup
        return judge(self.measurement, self.stored, rules=replace(self.rules, level=level))


def judge_family(
    cases: Mapping[str, Case],
    *,
    false_alarms: float,
    num_missing: int = 0,
) -> dict[str, dict[Metric, Verdict]]:
    """The verdicts on every case, by name and metric.

    Args:
        false_alarms: how often any gated figure may be called fallen although none is.
        num_missing: gated figures of planned workloads that were not measured; they keep their
            share.
    """
    tests: dict[tuple[str, Metric] | int, Callable[[float], bool]] = {
        (name, metric): _rejects(case, metric)
        for name, case in cases.items()
        for metric in case.gated
    }
    tests |= {number: lambda _: False for number in range(num_missing)}
    level = holm(tests, false_alarms)
    return {
        name: {metric: case.verdict(metric, level) for metric in METRICS}
        for name, case in cases.items()
    }


def _rejects(case: Case, metric: Metric) -> Callable[[float], bool]:
    return lambda level: case.verdict(metric, level).kind == "failed"
