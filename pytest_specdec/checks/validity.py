"""Valid answers on both engines: what speculation owes to structured prompts.

Under a constraint every answer of both engines must be valid. Without one a model may fail a
prompt on its own; then only what was valid on the baseline engine must stay valid. Floor 2:
imports from the floors below and its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pytest_specdec.checks.each_answer import in_any_answer
from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.json_schema import check_json
from pytest_specdec.checks.sql import check_sql
from pytest_specdec.checks.structured_outputs import check_choice, check_regex
from pytest_specdec.generation import Generation, Role
from pytest_specdec.workload import Prompt

Check = Callable[[Prompt, Generation], Finding | None]
CHECKS: Mapping[str, Check] = {
    "json": check_json,
    "sql": check_sql,
    "regex": check_regex,
    "choice": check_choice,
}


def checks_for(prompt: Prompt) -> Mapping[str, Check]:
    """The checks that a prompt's declarations ask for, by the names its test items have.

    A `grammar` asks for none: it says what the engine may write, and `expect` what is right.
    """
    held = prompt.request.get("structured_outputs", {})
    declared = {
        "json": prompt.json_schema,
        "sql": prompt.sql,
        "regex": held.get("regex"),
        "choice": held.get("choice"),
    }
    return {name: CHECKS[name] for name, value in declared.items() if value is not None}


def judge_validity(
    prompt: Prompt, *, baseline: Generation, speculative: Generation, check: Check
) -> Finding | None:
    """The defect of one prompt's pair of answers; `None` where speculation owes nothing.

    The finding's kind is the one of the answer at fault, and its first fact says which engine gave
    it and what the other one did.
    """
    on_baseline = invalid(prompt, baseline, check)
    on_speculative = invalid(prompt, speculative, check)
    if on_speculative is not None and (on_baseline is None or prompt.is_constrained):
        return _attributed(on_speculative, "speculative", other=on_baseline)
    if on_baseline is not None and prompt.is_constrained:
        return _attributed(on_baseline, "baseline", other=on_speculative)
    return None


def invalid(prompt: Prompt, generation: Generation, check: Check) -> Finding | None:
    """The defect of the first answer that has one, of all that `n` asked for."""
    return in_any_answer(generation, lambda answer: _told(check(prompt, answer), answer))


def _told(finding: Finding | None, answer: Generation) -> Finding | None:
    """With the answer that it is about."""
    return None if finding is None else replace(finding, answer=answer.text)


def _attributed(finding: Finding, role: Role, *, other: Finding | None) -> Finding:
    other_role = "baseline" if role == "speculative" else "speculative"
    others = "valid" if other is None else other.kind
    fact = f"on the {role} engine; the {other_role} engine's answer: {others}"
    hint = finding.hint
    if other is not None and hint is None:
        hint = "both engines fail, so look at the prompt and its constraint before speculation"
    if role == "baseline" and other is None and hint is None:
        hint = "the constraint does not hold on the baseline engine; look there before speculation"
    return replace(finding, facts=(fact, *finding.facts), hint=hint, role=role)
