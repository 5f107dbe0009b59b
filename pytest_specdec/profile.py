"""Profiles: one named pair of engines with its settings and tolerances, from `specdec.toml`.

    [profiles.my-model]
    device = "gpu"
    model = "org/target"
    engine_args = { dtype = "bfloat16" }
    speculative_config = { model = "org/draft", num_speculative_tokens = 4 }

Every key is checked here, before any engine starts: unknown ones are refused with a suggestion,
values by type and range. `engine_args` and `speculative_config` hold vLLM's own names; those are
checked by the vLLM that will read them, before it loads anything. Floor 1.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from pytest_specdec.conditions import Limits
from pytest_specdec.errors import ConfigError, did_you_mean
from pytest_specdec.generation import Role
from pytest_specdec.known_defects import KnownDefect, check_known_defects
from pytest_specdec.table import Place
from pytest_specdec.worth_it_settings import WorthItSettings, changes_name, check_worth_it

Device = Literal["cpu", "gpu"]
Layout = Literal["concurrent", "sequential"]
Identity = Literal["exact", "near-tie"]

Metric = Literal["acceptance", "speedup"]
METRICS: tuple[Metric, ...] = get_args(Metric)

# What the gate itself decides for both engines; a profile that set them would undo the pair.
RESERVED_ENGINE_ARGS = {
    "model": "set `model` of the profile",
    "speculative_config": "set `speculative_config` of the profile",
    "disable_log_stats": "the gate needs vLLM's counters and sets it",
    "per_request_spec_decode_metrics": "the gate sets it where vLLM has it",
    "stream_interval": "the gate needs a chunk for each step, to count its tokens",
}

# vLLM's switch to kernels whose results do not depend on what else is in the batch.
BATCH_INVARIANT = "VLLM_BATCH_INVARIANT"


def _share(default: float, text: str) -> Any:
    return field(default=default, metadata={"help": text, "min": 0.0, "max": 1.0})


def _at_least(minimum: float, default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text, "min": minimum})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerances:
    """How much worse than stored a number may be, how sure a verdict must be, and what rounding may
    decide. All drops are relative: 0.05 is 5%."""

    acceptance_rate_drop: float = _share(0.02, "fall of the acceptance rate that still passes")
    mean_acceptance_length_drop: float = _share(
        0.02, "fall of the mean acceptance length that still passes"
    )
    tokens_per_step_drop: float = _share(0.02, "fall of the tokens per step that still passes")
    speedup_drop: float = _share(0.05, "fall of the speedup that still passes")
    min_mean_acceptance_length: float = _at_least(
        1.0, 1.05, "floor of the mean acceptance length, stored baseline or not"
    )
    max_whole_drafts: float = _share(
        0.98, "share of drafts accepted at their first token that may be accepted whole"
    )
    min_speedup: float | None = _at_least(
        0.0, None, "floor of the speedup, stored baseline or not; unset: no such floor"
    )
    false_alarms: float = field(
        default=0.01,
        metadata={
            "help": "how often a session may fail although none of all its gated figures is below "
            "its floor; and as often, beside that, although its sampled answers are not biased",
            "min": 1e-6,
            "max": 0.5,
        },
    )
    misses: float = field(
        default=0.05,
        metadata={
            "help": "how often a figure that is below its floor may pass",
            "min": 1e-6,
            "max": 0.5,
        },
    )
    near_tie_nats: float = _at_least(
        0.0, 0.25, "largest difference of two tokens' log-probabilities that is a near tie"
    )
    logprob_nats: float = _at_least(
        0.0, 0.05, "how far a token's log-probability may be from the baseline engine's"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long an engine may take. Held by pytest's side, so a hung engine cannot break them."""

    import_s: float = _at_least(1, 180.0, "until vLLM is imported, in seconds")
    load_s: float = _at_least(1, 900.0, "until the engine is loaded, in seconds")
    silence_s: float = _at_least(
        1, 120.0, "the longest without a token or a part of a prompt, while it works, in seconds"
    )
    pass_s: float = _at_least(
        1, 3600.0, "the longest that one pass may take, silent or not, in seconds"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Requires:
    """The accelerator a GPU profile needs; checked before any engine starts."""

    num_gpus: int = _at_least(1, 1, "GPUs needed")
    compute_capability: tuple[str, ...] = field(
        default=(),
        metadata={"help": 'accepted compute capabilities, such as "10.x" or "9.0"; empty: any'},
    )
    memory_gib: float = _at_least(0, 0.0, "memory of each GPU, in GiB")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineEngine:
    """What the baseline engine has for itself, so that two versions of vLLM, or two ways to
    speculate, are compared in one session."""

    python: str | None = field(
        default=None,
        metadata={
            "help": "interpreter that has its vLLM, relative to the file's folder; unset: the "
            "speculative engine's"
        },
    )
    speculative_config: Mapping[str, Any] | None = field(
        default=None,
        metadata={"help": "vLLM's `speculative_config` of it; unset: it does not speculate"},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One named pair of engines: the same target model without and with speculation, unless
    `baseline` says otherwise."""

    name: str = field(metadata={"help": "the table's name"})
    root: Path = field(metadata={"help": "the file's folder, which model folders are beside"})
    device: Device = field(metadata={"help": "`cpu` or `gpu`"})
    model: str = field(metadata={"help": "target model: a folder beside the file, or a hub name"})
    speculative_config: Mapping[str, Any] = field(
        metadata={"help": "vLLM's `speculative_config` of the speculative engine"}
    )
    engine_args: Mapping[str, Any] = field(
        default_factory=dict, metadata={"help": "vLLM's engine arguments, the same for both"}
    )
    env: Mapping[str, str] = field(
        default_factory=dict, metadata={"help": "environment variables of both engines"}
    )
    layout: Layout = field(
        default="concurrent",
        metadata={
            "help": "`concurrent`: both engines stay loaded and take turns; `sequential`: where "
            "only one fits, the baseline engine makes all its passes first"
        },
    )
    identity: Identity = field(
        default="exact",
        metadata={
            "help": "`exact`: greedy answers have the same tokens; `near-tie`: where they differ, "
            "every speculative token is the baseline engine's most likely one or within "
            "`near_tie_nats` of it"
        },
    )
    gated: tuple[Metric, ...] = field(
        default=METRICS,
        metadata={
            "help": "the metrics that can fail the build; the others are measured and shown",
        },
    )
    num_loads: int = _at_least(
        1, 1, "engine starts at most; from two on, loads are what a speedup's scatter is taken from"
    )
    num_blocks: int = _at_least(
        1, 8, "ABBA blocks of timed passes in a load, at most; a block is two passes of each engine"
    )
    num_looks: int = _at_least(
        1, 3, "times that a speedup is looked at, to stop early where it is decided"
    )
    setup: str | None = field(
        default=None, metadata={"help": "the command that makes the model folder, for hints"}
    )
    tolerances: Tolerances = field(
        default_factory=Tolerances, metadata={"help": "how much worse than stored still passes"}
    )
    timeouts: Timeouts = field(
        default_factory=Timeouts, metadata={"help": "how long an engine may take"}
    )
    limits: Limits = field(
        default_factory=Limits,
        metadata={"help": "what may go on beside timed passes before a fall decides nothing"},
    )
    requires: Requires = field(
        default_factory=Requires, metadata={"help": "the accelerator it needs"}
    )
    known_defects: tuple[KnownDefect, ...] = field(
        default_factory=tuple,
        metadata={"help": "what is broken in some versions of vLLM, and must be seen there"},
    )
    baseline: BaselineEngine | None = field(
        default=None,
        metadata={
            "help": "what the baseline engine has for itself; unset: the speculative engine's "
            "interpreter, and no speculation"
        },
    )
    worth_it: WorthItSettings = field(
        default_factory=WorthItSettings,
        metadata={"help": "what `--specdec-worth-it` measures, and must find"},
    )

    def variant(self, changes: Mapping[str, Any]) -> Profile:
        """The same with some of `speculative_config` changed, and with a name that says what."""
        return replace(
            self,
            name=f"{self.name}@{changes_name(changes)}",
            speculative_config={**self.speculative_config, **changes},
        )

    @property
    def target_model(self) -> str:
        """The target as vLLM is told it: an absolute folder, or a hub name."""
        return _model(self.model, self.root)

    @property
    def draft_model(self) -> str | None:
        """The speculative engine's draft model likewise; `None` for methods without one, such as
        n-gram."""
        return (self.speculation("speculative") or {}).get("model")

    def speculation(self, role: Role) -> Mapping[str, Any] | None:
        """The `speculative_config` of one engine, its draft model as vLLM is told it; `None` for
        one that does not speculate."""
        config: Mapping[str, Any] | None = self.speculative_config
        if role == "baseline":
            config = None if self.baseline is None else self.baseline.speculative_config
        if config is None or "model" not in config:
            return config
        return {**config, "model": _model(config["model"], self.root)}

    def num_speculative_tokens(self, role: Role) -> int | None:
        """Tokens of one engine's drafts at most: 0 without speculation, `None` where its settings
        do not say."""
        config = self.speculation(role)
        return 0 if config is None else config.get("num_speculative_tokens")

    @property
    def is_against_speculation(self) -> bool:
        """Whether the baseline engine speculates too."""
        return self.speculation("baseline") is not None

    @property
    def baseline_python(self) -> Path | None:
        """The baseline engine's own interpreter; `None` where it has the speculative engine's.

        A bare name is looked up on PATH. Links are kept as they are: a virtual environment's
        interpreter is one.
        """
        if self.baseline is None or self.baseline.python is None:
            return None
        return interpreter(self.baseline.python, self.root)

    @property
    def is_batch_invariant(self) -> bool:
        """Whether its engines have kernels for repeatable results, which are slower than others."""
        return self.env.get(BATCH_INVARIANT, "0") not in {"", "0"}

    @property
    def num_gpus(self) -> int:
        """GPUs that its engines take: those it requires, or those that it spreads a model over."""
        spread = self.engine_args.get("tensor_parallel_size", 1)
        return max(self.requires.num_gpus, spread if isinstance(spread, int) else 1)

    def engine_arguments(self, role: Role) -> dict[str, Any]:
        """vLLM's arguments of one engine of the pair; speculation is all they differ in."""
        arguments: dict[str, Any] = {**self.engine_args, "model": self.target_model}
        config = self.speculation(role)
        return arguments if config is None else {**arguments, "speculative_config": dict(config)}

    @property
    def digest(self) -> str:
        """SHA-256 of what both engines are told: a change explains a change in numbers. An
        interpreter is not told to them: its versions are data."""
        told: list[Any] = [self.device, self.model, self.engine_args, self.speculative_config]
        told.append(self.env)
        # A profile whose baseline engine does not speculate keeps the digest that it had before
        # there was another kind.
        if self.is_against_speculation and self.baseline is not None:
            told.append(self.baseline.speculative_config)
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """What `specdec.toml` holds.

    Attributes:
        path: the file.
        profiles: by name, in file order.
        default: names of the profiles used on each device when none is chosen, at least one.
    """

    path: Path
    profiles: Mapping[str, Profile]
    default: Mapping[str, tuple[str, ...]]

    def chosen(self, name: str) -> Profile:
        """The profile of that name. Raises ConfigError with a suggestion."""
        if name not in self.profiles:
            raise ConfigError(
                f"no profile `{name}` in `{self.path.name}`",
                hint=did_you_mean(name, self.profiles),
            )
        return self.profiles[name]

    def defaults_for(self, device: Device) -> list[Profile]:
        """The device's defaults: those named in `[default]`, else its first in the file.

        Raises:
            ConfigError: there is no profile for it.
        """
        if device in self.default:
            return [self.profiles[name] for name in self.default[device]]
        for profile in self.profiles.values():
            if profile.device == device:
                return [profile]
        raise ConfigError(
            f"`{self.path.name}` has no profile for device: {device}",
            hint=f'add a `[profiles.NAME]` table with `device = "{device}"`',
        )


def interpreter(named: str, root: Path) -> Path:
    """A path relative to `root`; a bare name is looked up on PATH when it is started. Links are
    kept as they are: a virtual environment's interpreter is one."""
    path = _home_expanded(named)
    return root / path if "/" in named else path


def _home_expanded(named: str) -> Path:
    """`Path.expanduser` fails where there is no such user; here the path is just not found."""
    try:
        return Path(named).expanduser()
    except RuntimeError:
        return Path(named)


def read_profiles(path: Path) -> Profiles:
    """Reads `specdec.toml`.

    Raises:
        ConfigError: naming file and key, with a suggestion for unknown keys.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"no `{path.name}` in: {path.parent}",
            hint="create it with a `[profiles.NAME]` table; the README shows one",
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"`{path.name}` cannot be read: {error}") from error
    top = Place(path.name)
    top.refuse_unknown(data, {"profiles", "default"})
    tables = top.at("profiles").table(data.get("profiles", {}))
    if not tables:
        raise top.at("profiles").error("holds no `[profiles.NAME]` table")
    profiles = {
        name: _profile(name, top.at("profiles").at(name), table, path.parent)
        for name, table in tables.items()
    }
    default = _default(top.at("default"), data.get("default", {}), profiles)
    return Profiles(path=path, profiles=profiles, default=default)


def _default(
    place: Place, value: Any, profiles: Mapping[str, Profile]
) -> Mapping[str, tuple[str, ...]]:
    table = place.table(value)
    place.refuse_unknown(table, get_args(Device))
    return {
        device: tuple(_names(place.at(device), named, device, profiles))
        for device, named in table.items()
    }


def _names(place: Place, value: Any, device: str, profiles: Mapping[str, Profile]) -> Iterator[str]:
    """One name, or a list of them."""
    names = value if isinstance(value, list) else [value]
    if not names:
        raise place.error("names no profile", hint="name one, or leave the key out")
    for at, name in enumerate(names):
        if not isinstance(name, str) or name not in profiles:
            hint = did_you_mean(str(name), profiles)
            raise place.error(f"is no profile of this file: {name!r}", hint=hint)
        if profiles[name].device != device:
            raise place.error(f"names `{name}`, a profile for device: {profiles[name].device}")
        if name in names[:at]:
            raise place.error(f"names one twice: {name}")
        yield name


def _profile(name: str, place: Place, value: Any, folder: Path) -> Profile:
    profile = place.build(Profile, value, name=name, root=folder)
    for key, reason in RESERVED_ENGINE_ARGS.items():
        if key in profile.engine_args:
            raise place.at("engine_args").at(key).error("cannot be set here", hint=reason)
    if len(set(profile.gated)) < len(profile.gated):
        raise place.at("gated").error(f"names one twice: {[*profile.gated]!r}")
    if "CUDA_VISIBLE_DEVICES" in profile.env:
        raise (
            place.at("env")
            .at("CUDA_VISIBLE_DEVICES")
            .error(
                "cannot be set here", hint="set it for pytest, which shares out the GPUs it shows"
            )
        )
    if profile.is_batch_invariant and "speedup" in profile.gated:
        raise place.at("gated").error(
            f"holds `speedup`, but `env` sets {BATCH_INVARIANT}: {profile.env[BATCH_INVARIANT]}",
            hint="its kernels are not those that are served with; time them in a profile without "
            'it, and set `gated = ["acceptance"]` here',
        )
    _check_speculative_config(place.at("speculative_config"), profile.speculative_config)
    settings, own = profile.worth_it, profile.speculative_config
    check_worth_it(place.at("worth_it"), settings, speculative_config=own)
    for number, changes in enumerate(settings.speculative_configs):
        here = place.at("worth_it").at("speculative_configs").at(str(number))
        _check_speculative_config(here, {**own, **changes})
    if profile.baseline is not None:
        _check_baseline(place.at("baseline"), profile.baseline)
    check_known_defects(place.at("known_defects"), profile.known_defects)
    return profile


def _model(model: str, folder: Path) -> str:
    """A folder beside `specdec.toml`, made absolute; hub names stay as they are.

    `org/name` may be either: it is a folder only if it is there. What begins with `.`, `/` or `~`
    can only be a folder.
    """
    path = folder / _home_expanded(model)
    is_folder = model.startswith((".", "/", "~")) or path.is_dir()
    return str(path.resolve()) if is_folder else model


def _check_baseline(place: Place, baseline: BaselineEngine) -> None:
    if baseline.python is None and baseline.speculative_config is None:
        raise place.error(
            "is empty", hint="set `python` or `speculative_config` in it, or leave it out"
        )
    if baseline.python is not None and not baseline.python.strip():
        raise place.at("python").error("is empty", hint="leave it out to share an interpreter")
    if baseline.speculative_config is not None:
        _check_speculative_config(place.at("speculative_config"), baseline.speculative_config)


def _check_speculative_config(place: Place, config: Mapping[str, Any]) -> None:
    if not {"method", "model"} & set(config):
        raise place.error("names neither `method` nor `model`")
    for key in ("method", "model"):
        if not isinstance(config.get(key, ""), str):
            raise place.at(key).error(f"is not a string: {config[key]!r}")
    for key in ("num_speculative_tokens", "prompt_lookup_min", "prompt_lookup_max"):
        value = config.get(key, 1)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise place.at(key).error(f"is not a whole number of at least 1: {value!r}")
    low, high = config.get("prompt_lookup_min", 1), config.get("prompt_lookup_max")
    if high is not None and low > high:
        raise place.at("prompt_lookup_min").error(f"is above `prompt_lookup_max`: {low} > {high}")
