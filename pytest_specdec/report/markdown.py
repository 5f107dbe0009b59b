"""Markdown for `$GITHUB_STEP_SUMMARY` and for people: the verdict, a table, what failed, and why.

Floor 4; pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_specdec.report.excerpt import excerpt
from pytest_specdec.report.facts import ABSENT
from pytest_specdec.report.markdown_parts import inline, pre, table
from pytest_specdec.report.markdown_worth_it import worth_it_blocks
from pytest_specdec.report.told import (
    COLUMNS,
    OWN_COLUMNS,
    SEVERITIES,
    Data,
    Told,
    is_failing,
    own_test_rows,
    row,
    told,
    update_lines,
    update_rows,
)

MAX_BYTES = 1024 * 1024
"""What GitHub takes of one step's summary."""
UPDATE_COLUMNS = ("workload", "stored figure", "old", "new")
RESERVED_BYTES = 400  # for what tells that something was cut
SIGNS = {"passed": "✅", "failed": "❌", "error": "❌", "nothing ran": "⚠️"}


def markdown(data: Data, *, max_bytes: int = MAX_BYTES) -> str:
    """The whole text, cut to a size; what was cut is told at the end."""
    head = f"## {SIGNS[data['verdict']]} Speculative decoding gate: {data['verdict']}\n"
    blocks = [block for profile in data["profiles"] for block in _profile(profile)]
    return _fitted([head, *blocks], max_bytes)


def _fitted(blocks: Sequence[str], max_bytes: int) -> str:
    """All blocks that fit, in order."""
    kept, left, num_cut = [], max_bytes - RESERVED_BYTES, 0
    for block in blocks:
        size = len(block.encode()) + 1
        if size > left:
            num_cut += 1
            continue
        kept.append(block)
        left -= size
    if num_cut:
        kept.append(
            f"**Cut:** {num_cut} more parts do not fit in {max_bytes:,} bytes; "
            "`report.html` and `report.json` of the same session have all.\n"
        )
    return "\n".join(kept)


def _profile(profile: Data) -> Iterator[str]:
    hardware = profile["hardware"]
    yield (
        f"### Profile {inline(profile['profile']['name'])}: {profile['verdict']}\n\n"
        f"vLLM {inline(profile['versions'].get('vllm') or ABSENT)} on {inline(hardware['name'])}"
        f" ({hardware['count']} {'cores' if hardware['device'] == 'cpu' else 'GPUs'})\n"
    )
    if profile["workloads"]:
        yield table(COLUMNS, [_marked_row(each) for each in profile["workloads"]])
    if profile["worth_it"] is not None:
        yield from worth_it_blocks(profile["worth_it"])
    if profile["failure"] is not None:
        yield f"**The engines ended:**\n\n{pre(profile['failure'])}"
    for name, reason in profile["not_run"].items():
        yield f"- ❌ not run: {inline(name)}: {inline(reason)}\n"
    if profile["is_unused_failing"]:
        yield f"- ❌ stored, but no test asked for: {inline(', '.join(profile['unused']))}\n"
    everything = [(each["name"], one) for each in profile["workloads"] for one in told(each)]
    for severity, title in (("error", "Failures"), ("warning", "Known defects"), ("note", "Notes")):
        found = [_details(name, one) for name, one in everything if one.severity == severity]
        if found:
            yield f"#### {title} ({len(found)})\n"
            yield from found
    if profile["own_tests"]:
        failing = sum(map(is_failing, profile["own_tests"]))
        yield f"#### Tests of your own ({len(profile['own_tests'])}, failing: {failing})\n"
        yield table(OWN_COLUMNS, [[*map(inline, each)] for each in own_test_rows(profile)])
    yield from _environment(profile)


def _marked_row(workload: Data) -> tuple[str, ...]:
    name, verdict, *rest = row(workload)
    sign = "❌" if workload["is_failing"] else "✅" if verdict in ("passed", "stored") else "⚠️"
    return (inline(name), f"{sign} {verdict}", *map(inline, rest))


def _details(workload: str, one: Told) -> str:
    """The place of the difference or of the defect included."""
    evidence = "".join(f"\n{pre(each)}" for each in _evidence(one))
    return (
        f"<details>\n<summary>{inline(workload)}: {inline(one.test)}: {inline(one.title)} "
        f"({SEVERITIES[one.severity]})</summary>\n\n{pre(one.text)}{evidence}\n</details>\n"
    )


def _evidence(one: Told) -> Iterator[str]:
    for each in one.divergences:
        for side in (each["first"], each["second"]):
            position = each["text_position"]
            told_where = "texts are equal" if position is None else f"from character {position}"
            shown = _shown(side["text"], position)
            yield f"{each['prompt_id']}, {side['label']} ({told_where}):\n{shown}"
    if one.finding is not None and one.finding["answer"] is not None:
        place, pointer = one.finding["position"], one.finding["pointer"]
        at = "" if place is None else f", at character {place}"
        at += "" if pointer is None else f", at JSON pointer {pointer or '(the root)'}"
        yield f"the {one.finding['role']} engine's answer{at}:\n" + _shown(
            one.finding["answer"], place
        )


def _shown(text: str, position: int | None) -> str:
    """With `>>>` before the place, which `<pre>` cannot mark otherwise on GitHub."""
    part = excerpt(text, position)
    cut_before = f"[{part.num_cut_before} characters left out] " if part.num_cut_before else ""
    cut_after = f" [{part.num_cut_after} characters left out]" if part.num_cut_after else ""
    mark = "" if position is None else " >>> " if part.marked else " >>> (the text ends)"
    return f"{cut_before}{part.before}{mark}{part.marked}{part.after}{cut_after}"


def _environment(profile: Data) -> Iterator[str]:
    stored = profile["stored_versions"]
    versions = [
        (name, version or ABSENT, ", ".join(stored.get(name, ())) or ABSENT)
        for name, version in profile["versions"].items()
    ]
    yield "#### Environment\n"
    yield table(("", "now", "stored"), [[*map(inline, each)] for each in versions])
    differences = [
        (key, *map(str, values)) for key, values in profile["config_differences"].items()
    ]
    if differences:
        yield "The engines differ in:\n"
        titles = ("", "baseline", "speculative")
        yield table(titles, [[*map(inline, each)] for each in differences])
    notes = [
        *(
            f"{each['name']}: while it was timed, {disturbance}"
            for each in profile["workloads"]
            for disturbance in each["disturbances"]
        ),
        *(f"known defect that no test is about: {_defect(each)}" for each in profile["untested"]),
        *update_lines(profile),
    ]
    if profile["is_changed"]:
        notes.append("the profile's settings are not those that the numbers were stored with")
    if notes:
        yield "\n".join(f"- {inline(each)}" for each in notes) + "\n"
    if rows := update_rows(profile):
        yield table(UPDATE_COLUMNS, [[*map(inline, each)] for each in rows])


def _defect(defect: Data) -> str:
    return f"`{defect['check']}` of `{defect['workload']}`"
