"""Whether what holds of the first pass holds under another circumstance too: the same greedy
answers, valid constrained ones, the same acceptance.

Floor 2: imports from the floors below and its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pytest_specdec.checks.acceptance import acceptance_told, find_fall
from pytest_specdec.checks.circumstance import in_words, not_brought_about
from pytest_specdec.checks.finding import Finding, at_most
from pytest_specdec.checks.identity import first_difference
from pytest_specdec.checks.validity import Check, checks_for, judge_validity
from pytest_specdec.generation import Generation, Pass, Retake, RunPair
from pytest_specdec.workload import Prompt, Workload

MAX_SHOWN = 3
IsNear = Callable[[Generation], bool]


def never_near(_answer: Generation) -> bool:
    """The rule at level `exact`: what differs, differs."""
    return False


def check_again(
    workload: Workload,
    runs: RunPair,
    retake: Retake,
    *,
    acceptance_rate_drop: float,
    is_near: IsNear = never_near,
    validity: Callable[[Prompt], Mapping[str, Check]] = checks_for,
) -> Finding | None:
    """The first of these that holds of one retake.

    Args:
        is_near: whether an answer that differs is as good as the same; asked of no other.
        acceptance_rate_drop: the fall that is allowed, as a share of the first pass's rate.
        validity: the checks that a constrained prompt's answers are held to.
    """
    undone = not_brought_about(workload, runs, retake)
    if undone is not None or retake.baseline is None or retake.speculative is None:
        return undone
    where = in_words(retake.circumstance)
    greedy = {prompt.id for prompt in workload.asked if prompt.is_greedy}
    first = runs.baseline.passes[0]
    unrepeated = _differences(first, retake.baseline, greedy, is_near)
    rest = greedy - unrepeated.keys()
    changed = _differences(first, retake.speculative, rest, is_near)
    return (
        _divergence(changed, where, _differences(first, runs.speculative.passes[0], greedy))
        or _unrepeatable(unrepeated, where)
        or _invalid(workload, retake.baseline, retake.speculative, where, validity)
        or _fallen(
            workload,
            runs.speculative.passes[0],
            retake.speculative,
            retake.circumstance,
            acceptance_rate_drop,
        )
    )


def _differences(
    first: Pass, again: Pass, prompt_ids: set[str], is_near: IsNear = never_near
) -> dict[str, int]:
    """The position of the first difference, for each of these prompts that has one."""
    answers = {each.prompt_id: each.token_ids for each in first.generations}
    found = {}
    for each in again.generations:
        if each.prompt_id in prompt_ids:
            position = first_difference(answers[each.prompt_id], each.token_ids)
            if position is not None and not is_near(each):
                found[each.prompt_id] = position
    return found


def _divergence(
    changed: Mapping[str, int], where: str, before: Mapping[str, int]
) -> Finding | None:
    if not changed:
        return None
    return Finding(
        kind="divergence",
        prompt_id=None,
        facts=(
            f"{where}: prompts whose speculative answer is not the baseline's of the first pass: "
            f"{len(changed)}; of them different in the first pass already: "
            f"{len(changed.keys() & before.keys())}",
            *_positions(changed),
            f"the baseline engine answers these prompts {where} as in its first pass",
        ),
        hint="greedy speculation must not change a token, whatever else the engine does",
    )


def _unrepeatable(unrepeated: Mapping[str, int], where: str) -> Finding | None:
    if not unrepeated:
        return None
    return Finding(
        kind="baseline not repeatable",
        prompt_id=None,
        facts=(
            f"{where}: prompts that the baseline engine answers differently: {len(unrepeated)}",
            *_positions(unrepeated),
        ),
        hint="not speculation's fault: the plain engine does not repeat itself; look at numerics",
    )


def _positions(differences: Mapping[str, int]) -> tuple[str, ...]:
    facts = [f"`{name}` differs first at token {at}" for name, at in differences.items()]
    return at_most(facts, MAX_SHOWN)


def _invalid(
    workload: Workload,
    baseline: Pass,
    speculative: Pass,
    where: str,
    validity: Callable[[Prompt], Mapping[str, Check]],
) -> Finding | None:
    for prompt in workload.asked:
        for check in validity(prompt).values() if prompt.is_constrained else ():
            found = judge_validity(
                prompt,
                baseline=baseline.generation(prompt.id),
                speculative=speculative.generation(prompt.id),
                check=check,
            )
            if found is not None:
                return replace(found, facts=(where, *found.facts))
    return None


def _fallen(
    workload: Workload, first: Pass, again: Pass, circumstance: str, drop: float
) -> Finding | None:
    if circumstance == "under-preemption":
        # What fills the cache drafts too, and is in the counts of the whole engine.
        again = replace(again, drafts=None)
    fall = find_fall(workload, [first], [again], drop=drop)
    if fall is None:
        return None
    return Finding(
        kind="acceptance fell",
        prompt_id=None,
        facts=(
            f"{in_words(circumstance)}: {acceptance_told(fall.after)}",
            f"in the first pass: {acceptance_told(fall.before)}",
            f"greedy prompts with the same answer in both: {fall.num_prompts}",
            f"allowed fall: {drop:.1%} of the first pass's rate",
        ),
        hint="answers are the same, drafts are not; look at what the drafter sees of the others",
    )
