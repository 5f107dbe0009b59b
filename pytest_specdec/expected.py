"""What is expected to fail: the known defects that this vLLM has, against what a workload showed.

Floor 3; pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_specdec.assessment import Assessment, Subject
from pytest_specdec.known_defects import KnownDefect, unseen
from pytest_specdec.verdict import Outcome
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
            if each.concerns(workload.name, *subject) and each.is_of(self.vllm_version):
                return each
        return None

    def findings(self, assessment: Assessment) -> Mapping[Subject, KnownDefect]:
        """The findings that a known defect explains."""
        known = {
            subject: self.defect(assessment.workload, subject) for subject in assessment.findings
        }
        return {subject: each for subject, each in known.items() if each is not None}

    def outcome(self, assessment: Assessment, subject: Subject, failure: str | None) -> Outcome:
        """A failure as it is, or as a known defect's; and a defect that shows itself no more.

        Args:
            failure: what the test would say; `None` where it has nothing to say.
        """
        defect = self.defect(assessment.workload, subject)
        if defect is None:
            return Outcome(kind="pass" if failure is None else "fail", message=failure or "")
        if failure is not None:
            return Outcome(kind="xfail", message=f"{defect}\n{failure}")
        if defect in self.findings(assessment).values():
            return Outcome(kind="pass", message="")  # others of its tests show it
        return Outcome(kind="fail", message=unseen(defect, self.vllm_version))
