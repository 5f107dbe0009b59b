"""What is expected to fail: the known defects that this vLLM has, against what a workload showed.

Floor 3; pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_specdec.assessment import Assessment, Subject
from pytest_specdec.checks.finding import Finding
from pytest_specdec.known_defects import KnownDefect, unseen
from pytest_specdec.verdict import Outcome, Verdict
from pytest_specdec.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """One profile's known defects under one vLLM.

    Attributes:
        defects: all entries of the profile, of whatever versions.
        vllm_version: of the engines; `None` before it is known, when nothing is expected.
    """

    defects: tuple[KnownDefect, ...]
    vllm_version: str | None

    def defect(self, workload: Workload, subject: Subject) -> KnownDefect | None:
        """The defect that a check may show on this vLLM; `None` where there is none."""
        for each in self.defects:
            if each.concerns(workload.base_name, *subject) and each.is_of(self.vllm_version):
                return each
        return None

    def findings(self, assessment: Assessment) -> Mapping[Subject, KnownDefect]:
        """The findings that a known defect explains."""
        return {
            subject: defect
            for subject, finding in assessment.findings.items()
            if (defect := self.defect(assessment.workload, subject)) is not None
            and defect.explains(finding.kind)
        }

    def outcome(
        self, assessment: Assessment, subject: Subject, failure: Finding | Verdict | None
    ) -> Outcome:
        """A failure as it is, or as a known defect's; and a defect that shows itself no more.

        Args:
            failure: what fails the test, if anything does.
        """
        defect = self.defect(assessment.workload, subject)
        if failure is not None:
            if defect is None or not defect.explains(failure.kind):
                return Outcome(kind="fail", message=str(failure))
            return Outcome(kind="xfail", message=f"{defect}\n{failure}")
        if defect is None or defect in self.findings(assessment).values():
            return Outcome(kind="pass", message="")  # or others of its tests show it
        return Outcome(kind="xpass", message=unseen(defect, self.vllm_version))
