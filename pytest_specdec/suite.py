"""Collection: a `.jsonl` workload becomes test items, with no Python of the user's.

    sql.jsonl::smollm2-ngram::identical[orders-by-city]     one for each prompt and check
    sql.jsonl::smollm2-ngram::counts                        one for each check of the whole workload
    sql.jsonl::smollm2-ngram::again[8-in-flight]            one for each circumstance
    sql.jsonl::smollm2-ngram::acceptance                    one for each metric

A session that asks whether speculation pays has those of `point_items` instead. Setup runs the
engines (so an engine that fails is an error), the test itself only judges (so a verdict is a
failure). Floor 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.assessment import Subject
from pytest_specdec.benchmarks import hand_over, is_asked
from pytest_specdec.catalogue import AGAIN, check_names
from pytest_specdec.errors import BenchmarkWarning, SpecdecError
from pytest_specdec.gate_item import GateItem, ItemsOfProfile, enforce, warn
from pytest_specdec.point_gate import points_of
from pytest_specdec.point_items import PointItems
from pytest_specdec.profile_report import workload_report
from pytest_specdec.report.benchmark_entries import benchmark_entries
from pytest_specdec.report.facts import WorkloadReport
from pytest_specdec.report.properties import check_properties, metric_properties
from pytest_specdec.session import GateSession
from pytest_specdec.workload import Metric, read_workload


class WorkloadFile(pytest.File):
    """One `.jsonl` file: a collector for each profile of the session."""

    def collect(self) -> Iterator[pytest.Collector]:
        workload = read_workload(self.path)
        session = GateSession.of(self.config)
        if session.options.is_worth_it:
            for gate in session.measured_gates():
                if points_of(gate, workload):
                    yield PointItems.from_parent(
                        self, name=gate.profile.name, gate=gate, workload=workload
                    )
            return
        for gate in session.profile_gates():
            session.asks_for(gate, workload)
            yield ProfileItems.from_parent(
                self, name=gate.profile.name, gate=gate, workload=workload
            )

    def repr_failure(
        self,
        excinfo: pytest.ExceptionInfo[BaseException],
        style: Any = None,  # noqa: ARG002
    ) -> Any:
        if isinstance(excinfo.value, SpecdecError):
            return str(excinfo.value)  # a message for people: no traceback
        return super().repr_failure(excinfo)


class ProfileItems(ItemsOfProfile):
    """The tests that gate one workload under one profile."""

    def collect(self) -> Iterator[pytest.Item]:
        for check, subject in check_names(self.workload):
            name = check if subject is None else f"{check}[{subject}]"
            yield CheckItem.from_parent(
                self,
                name=name,
                # As text: pytest 9.2 reads the brackets in it, and `--lf` finds the test again.
                nodeid=f"{self.nodeid}::{name}",
                subject=(check, subject),
            )
        for metric in self.gate.gated(self.workload):
            yield MetricItem.from_parent(self, name=metric, metric=metric)


class CheckItem(GateItem):
    """One check on one prompt, under one circumstance, or on the whole workload."""

    def __init__(self, *, subject: Subject, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.subject = subject

    def runtest(self) -> None:
        gate, found = self.parent.gate, self.assessment.findings.get(self.subject)
        defect = gate.expected.findings(self.assessment).get(self.subject)
        self.user_properties += check_properties(found, defect)
        enforce(self, gate.outcome_of(self.assessment, self.subject))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        path, _, name = super().reportinfo()
        prompts = {prompt.id: prompt.line - 1 for prompt in self.workload.prompts}
        check, subject = self.subject
        line = None if check == AGAIN or subject is None else prompts[subject]
        return path, line, name


class MetricItem(GateItem):
    """One metric of the workload, judged together with all others that are gated."""

    is_judged_last = True

    def __init__(self, *, metric: Metric, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.metric = metric
        self.subject = (metric, None)

    def setup(self) -> None:
        super().setup()
        self.parent.gate.measure_planned()

    def runtest(self) -> None:
        report = workload_report(self.parent.gate, self.assessment)
        self.user_properties += metric_properties(report, self.metric)
        if self.metric == "speedup" and is_asked(self.config):
            self._hand_over(report)
        enforce(self, self.parent.gate.outcome(self.assessment, self.metric))

    def _hand_over(self, report: WorkloadReport) -> None:
        entries = benchmark_entries(report, profile=self.profile_name, nodeid=self.nodeid)
        if (why_not := hand_over(self.config, entries)) is not None:
            warn(self, BenchmarkWarning(why_not))
