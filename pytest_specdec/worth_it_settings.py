"""What a profile asks of a session that answers whether speculation pays.

    [profiles.my-model.worth_it]
    must_gain = { json_generation = [1, 4] }
    speculative_configs = [{ num_speculative_tokens = 2 }, { num_speculative_tokens = 8 }]

Floor 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_specdec.table import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class WorthItSettings:
    """How a session with `--specdec-worth-it` measures a profile, and what it must find."""

    num_blocks: int = field(
        default=2,
        metadata={
            "help": "ABBA blocks of timed passes at each point; a block is two passes of each "
            "engine",
            "min": 1,
        },
    )
    min_gain: float = field(
        default=1.0,
        metadata={
            "help": "the speedup that a gain must be above; what is below it is a loss",
            "min": 0.01,
        },
    )
    must_gain: Mapping[str, tuple[int, ...]] = field(
        default_factory=dict,
        metadata={
            "help": "by workload, the requests in flight at which speculation must gain, in every "
            "context and at every temperature of its sweep"
        },
    )
    speculative_configs: tuple[Mapping[str, Any], ...] = field(
        default=(),
        metadata={
            "help": "changes of `speculative_config` to be measured beside it, each with engines "
            "of its own"
        },
    )


def check_worth_it(
    place: Place, settings: WorthItSettings, *, speculative_config: Mapping[str, Any]
) -> None:
    """Refuses what could not be judged or would be measured twice.

    Args:
        speculative_config: the profile's own, over which each change is laid.

    Raises:
        ConfigError: naming file and key.
    """
    for name, loads in settings.must_gain.items():
        here = place.at("must_gain").at(name)
        if not loads:
            raise here.error("is empty", hint="name requests in flight, or leave it out")
        for at, load in enumerate(loads):
            if load < 1:
                raise here.error(f"is below 1: {load}")
            if load in loads[:at]:
                raise here.error(f"names one twice: {load}")
    seen = {"": dict(speculative_config)}
    for number, changes in enumerate(settings.speculative_configs):
        here = place.at("speculative_configs").at(str(number))
        config = {**speculative_config, **changes}
        if not changes or config == speculative_config:
            raise here.error(
                "changes nothing", hint="the profile itself always is measured; leave it out"
            )
        if config in seen.values():
            raise here.error("is there twice", hint="each has engines of its own; leave one out")
        if (name := changes_name(changes)) in seen:
            raise here.error(
                f"has the name of another one: `{name}`",
                hint="give the two different names, or measure them as profiles",
            )
        seen[name] = config


def changes_name(changes: Mapping[str, Any]) -> str:
    """As it stands in the names of tests and logs: `num_speculative_tokens=2`; of a path its last
    part."""
    return ",".join(f"{key}={_word(value)}" for key, value in changes.items())


def _word(value: Any) -> str:
    text = value.rstrip("/").rpartition("/")[2] if isinstance(value, str) else json.dumps(value)
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-")
