"""Whether a request that speculation cannot honour is refused, and not answered regardless.

Floor 2: imports from the floors below and its own.
"""

from __future__ import annotations

from pytest_specdec.checks.finding import Finding
from pytest_specdec.generation import RunPair
from pytest_specdec.json_text import shortened_text
from pytest_specdec.workload import Prompt

ORDINARY = frozenset({"messages", "max_tokens", "temperature"})


def check_refused(
    prompt: Prompt, runs: RunPair, *, is_against_speculation: bool = False
) -> Finding | None:
    """The speculative engine must refuse the prompt, and the baseline engine must take it; one that
    speculates as well may do either."""
    said = {each.role: each.said for each in runs.refusals if each.prompt_id == prompt.id}
    fields = ", ".join(f"`{key}`" for key in prompt.request if key not in ORDINARY) or "no field"
    missing = [role for role in ("baseline", "speculative") if role not in said]
    if missing:
        return Finding(
            kind="not asked",
            prompt_id=prompt.id,
            facts=(f"nobody asked: the {' and the '.join(missing)} engine",),
            hint="what was not tried is not known; run the workload again",
        )
    if said["speculative"] is None:
        return Finding(
            kind="not refused",
            prompt_id=prompt.id,
            facts=(f"the speculative engine answered a request with {fields}",),
            hint="see that the field is honoured, not ignored; if it is, take `refused` out of "
            "`expect`, so that the answers are compared",
        )
    if said["baseline"] is not None and not is_against_speculation:
        return Finding(
            kind="refused without speculation",
            prompt_id=prompt.id,
            facts=(
                f"both engines refused a request with {fields}",
                f"the baseline engine said: {shortened_text(said['baseline'], 200)}",
            ),
            hint="the prompt says nothing of speculation; mend the request",
        )
    return None
