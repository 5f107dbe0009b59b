"""Reading `specdec.toml`: what a profile becomes, and how each refusal reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.conditions import Limits
from pytest_specdec.errors import ConfigError
from pytest_specdec.generation import ROLES
from pytest_specdec.known_defects import KnownDefect
from pytest_specdec.profile import (
    RESERVED_ENGINE_ARGS,
    Profile,
    Profiles,
    Requires,
    Timeouts,
    Tolerances,
    read_profiles,
)

ROOT = Path(__file__).resolve().parents[1]
SMALL = """
[profiles.small]
device = "cpu"
model = "org/target"
speculative_config = { method = "ngram", num_speculative_tokens = 4 }
"""
GPU = """
[profiles.big]
device = "gpu"
model = "org/target"
speculative_config = { model = "org/draft" }
"""


def read(folder: Path, text: str) -> Profiles:
    path = folder / "specdec.toml"
    path.write_text(text, encoding="utf-8")
    return read_profiles(path)


def profile(folder: Path, *more: str) -> Profile:
    return read(folder, SMALL + "\n".join(more)).chosen("small")


def test_the_least_a_profile_says(tmp_path: Path) -> None:
    small = profile(tmp_path)
    assert (small.name, small.root, small.device, small.model) == (
        "small",
        tmp_path,
        "cpu",
        "org/target",
    )
    assert (small.layout, small.setup) == ("concurrent", None)
    assert (small.num_loads, small.num_blocks, small.num_looks) == (1, 8, 3)
    assert small.gated == ("acceptance", "speedup")
    assert (small.identity, small.tolerances.near_tie_nats) == ("exact", 0.25)
    assert (small.engine_args, small.env) == ({}, {})
    assert small.known_defects == ()
    assert (small.timeouts.pass_s, small.tolerances.logprob_nats) == (3600.0, 0.05)
    assert (small.tolerances, small.timeouts, small.limits, small.requires) == (
        Tolerances(),
        Timeouts(),
        Limits(),
        Requires(),
    )


def test_all_a_profile_can_say(tmp_path: Path) -> None:
    whole = profile(
        tmp_path,
        'layout = "sequential"',
        "num_loads = 4",
        "num_blocks = 3",
        "num_looks = 2",
        'gated = ["speedup"]',
        'identity = "near-tie"',
        'setup = "make it"',
        'engine_args = { dtype = "float32", nested = { a = [1] } }',
        'env = { KEY = "value" }',
        "[profiles.small.tolerances]",
        "speedup_drop = 0",
        "min_speedup = 1.5",
        "near_tie_nats = 0.5",
        "logprob_nats = 0",
        "[profiles.small.timeouts]",
        "silence_s = 3",
        "pass_s = 60",
        "[profiles.small.limits]",
        "max_other_cpu_share = 0.5",
        "[profiles.small.requires]",
        "num_gpus = 2",
        'compute_capability = ["10.x"]',
        "[[profiles.small.known_defects]]",
        'check = "counts"',
        'workload = "code"',
        'versions = "<1"',
        'reason = "why"',
        "[[profiles.small.known_defects]]",
        'check = "identical"',
        'workload = "code"',
        'versions = "==0.32.0"',
        'reason = "why else"',
        'about = ["one", "two"]',
        'kind = ["near tie", "divergence"]',
    )
    assert (whole.layout, whole.setup) == ("sequential", "make it")
    assert (whole.num_loads, whole.num_blocks, whole.num_looks) == (4, 3, 2)
    assert whole.gated == ("speedup",)
    assert whole.identity == "near-tie"
    assert whole.engine_args == {"dtype": "float32", "nested": {"a": [1]}}
    assert whole.env == {"KEY": "value"}
    assert whole.tolerances == Tolerances(
        speedup_drop=0, min_speedup=1.5, near_tie_nats=0.5, logprob_nats=0
    )
    assert whole.timeouts == Timeouts(silence_s=3, pass_s=60)
    first = KnownDefect(check="counts", workload="code", versions="<1", reason="why")
    assert whole.known_defects == (
        first,
        KnownDefect(
            check="identical",
            workload="code",
            versions="==0.32.0",
            reason="why else",
            about=("one", "two"),
            kind=("near tie", "divergence"),
        ),
    )
    assert whole.limits == Limits(max_other_cpu_share=0.5)
    assert whole.requires == Requires(num_gpus=2, compute_capability=("10.x",))


def test_the_engines_differ_in_speculation_only(tmp_path: Path) -> None:
    small = profile(tmp_path, 'engine_args = { dtype = "float32" }')
    baseline, speculative = (small.engine_arguments(role) for role in ROLES)
    assert baseline == {"model": "org/target", "dtype": "float32"}
    assert speculative.pop("speculative_config") == {"method": "ngram", "num_speculative_tokens": 4}
    assert speculative == baseline
    assert "model" not in small.speculative_config


@pytest.mark.parametrize(
    ("model", "is_there", "is_folder"),
    [
        ("org/target", False, False),
        ("org/target", True, True),
        ("./target", False, True),
        ("../target", False, True),
        ("/target", False, True),
        ("~/target", False, True),
    ],
)
def test_a_model_is_a_folder_beside_the_file_or_a_hub_name(
    tmp_path: Path, model: str, *, is_there: bool, is_folder: bool
) -> None:
    if is_there:
        (tmp_path / model).mkdir(parents=True)
    text = GPU.replace("org/target", model).replace("org/draft", model)
    told = read(tmp_path, text).chosen("big")
    folder = str((tmp_path / Path(model).expanduser()).resolve())
    assert told.target_model == (folder if is_folder else model)
    assert told.draft_model == told.target_model
    arguments = told.engine_arguments("speculative")
    assert arguments["speculative_config"]["model"] == told.target_model
    assert told.speculative_config["model"] == model


@pytest.mark.parametrize(
    ("value", "gated", "is_invariant"),
    [("1", "acceptance", True), ("0", "speedup", False), ("", "speedup", False)],
)
def test_kernels_that_are_invariant_to_the_batch_gate_no_speedup(
    tmp_path: Path, value: str, gated: str, *, is_invariant: bool
) -> None:
    told = profile(
        tmp_path, f'env = {{ VLLM_BATCH_INVARIANT = "{value}" }}', f'gated = ["{gated}"]'
    )
    assert told.is_batch_invariant is is_invariant


def test_a_method_without_a_draft_model_has_none(tmp_path: Path) -> None:
    assert profile(tmp_path).draft_model is None


@pytest.mark.parametrize(
    ("more", "is_same"),
    [
        ("num_blocks = 5", True),
        ("num_loads = 5", True),
        ('gated = ["acceptance"]', True),
        ("[profiles.small.limits]\nmax_clock_spread = 0.2", True),
        ("[profiles.small.tolerances]\nspeedup_drop = 0.2", True),
        (
            "[[profiles.small.known_defects]]\ncheck = 'counts'\nworkload = 'code'\n"
            "versions = '<1'\nreason = 'why'",
            True,
        ),
        ('engine_args = { dtype = "float32" }', False),
        ('env = { KEY = "value" }', False),
    ],
)
def test_the_digest_is_of_what_the_engines_are_told(
    tmp_path: Path, more: str, *, is_same: bool
) -> None:
    assert (profile(tmp_path, more).digest == profile(tmp_path).digest) is is_same


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('layuot = "sequential"', "`profiles.small.layuot` is not a known key\nhint: did you mean"),
        ('layout = "serial"', "`profiles.small.layout` is not one of its values: 'serial'"),
        ("num_blocks = 0", "`profiles.small.num_blocks` is below 1: 0"),
        ("num_loads = 0", "`profiles.small.num_loads` is below 1: 0"),
        ("num_looks = 0", "`profiles.small.num_looks` is below 1: 0"),
        (
            'gated = ["sped"]',
            "`profiles.small.gated` is not one of its values: 'sped'\nhint: did you mean `speed",
        ),
        ('gated = "speedup"', "`profiles.small.gated` is not a list: 'speedup'"),
        (
            'gated = ["speedup", "speedup"]',
            "`profiles.small.gated` names one twice: ['speedup', 'speedup']",
        ),
        (
            'env = { VLLM_BATCH_INVARIANT = "1" }',
            "`profiles.small.gated` holds `speedup`, but `env` sets VLLM_BATCH_INVARIANT: 1\n"
            "hint: its kernels are not those that are served with; time them in a profile without "
            'it, and set `gated = ["acceptance"]` here',
        ),
        (
            "limits = { max_clock_spread = 2 }",
            "`profiles.small.limits.max_clock_spread` is above 1: 2",
        ),
        (
            'identity = "near-ties"',
            "`profiles.small.identity` is not one of its values: 'near-ties'\nhint: did you mean",
        ),
        (
            "tolerances = { near_tie_nats = -0.1 }",
            "`profiles.small.tolerances.near_tie_nats` is below 0: -0.1",
        ),
        ("num_blocks = 1.5", "`profiles.small.num_blocks` is not a whole number: 1.5"),
        ("engine_args = 1", "`profiles.small.engine_args` is not a table: 1"),
        ("env = { KEY = 1 }", "`profiles.small.env.KEY` is not a string: 1"),
        (
            "tolerances = { speedup_drop = 1.1 }",
            "`profiles.small.tolerances.speedup_drop` is above 1: 1.1",
        ),
        (
            "tolerances = { acceptance_rate_drop = nan }",
            "`profiles.small.tolerances.acceptance_rate_drop` is not a finite number: nan",
        ),
        (
            "tolerances = { false_alarms = 1.0 }",
            "`profiles.small.tolerances.false_alarms` is above 0.5: 1.0",
        ),
        ("tolerances = { misses = 0.0 }", "`profiles.small.tolerances.misses` is below 1e-06: 0.0"),
        (
            "tolerances = { min_mean_acceptance_length = 0.9 }",
            "`profiles.small.tolerances.min_mean_acceptance_length` is below 1: 0.9",
        ),
        ("timeouts = { load_s = 0 }", "`profiles.small.timeouts.load_s` is below 1: 0"),
        ("timeouts = { load_s = inf }", "`profiles.small.timeouts.load_s` is not a finite"),
        ("timeouts = { pass_s = 0.5 }", "`profiles.small.timeouts.pass_s` is below 1: 0.5"),
        (
            "tolerances = { logprob_nats = -1 }",
            "`profiles.small.tolerances.logprob_nats` is below 0: -1",
        ),
        ("known_defects = 1", "`profiles.small.known_defects` is not a list: 1"),
        (
            "[[profiles.small.known_defects]]\ncheck = 'counts'",
            "`profiles.small.known_defects.0` lacks `workload`: the workload that shows it",
        ),
        (
            "[[profiles.small.known_defects]]\ncheck = 'counts'\nworkload = 'code'\n"
            "versions = 'new'\nreason = 'why'",
            "`profiles.small.known_defects.0.versions` names no versions: 'new'",
        ),
        (
            "env = { CUDA_VISIBLE_DEVICES = '0' }",
            "`profiles.small.env.CUDA_VISIBLE_DEVICES` cannot be set here\nhint: set it for "
            "pytest, which shares out the GPUs it shows",
        ),
        ("requires = { num_gpus = 0 }", "`profiles.small.requires.num_gpus` is below 1: 0"),
        *(
            (
                f"engine_args = {{ {key} = 1 }}",
                f"`profiles.small.engine_args.{key}` cannot be set here\nhint: {reason}",
            )
            for key, reason in RESERVED_ENGINE_ARGS.items()
        ),
        ("[default]\ncpu = 'smal'", "`default.cpu` is no profile of this file: 'smal'\nhint: did"),
        (
            "[default]\ncpu = ['smal']",
            "`default.cpu` is no profile of this file: 'smal'\nhint: did",
        ),
        ("[default]\ncpu = []", "`default.cpu` names no profile\nhint: name one, or leave"),
        ("[default]\ncpu = ['small', 'small']", "`default.cpu` names one twice: small"),
        ("[default]\ncpu = 3", "`default.cpu` is no profile of this file: 3"),
        ("[default]\ngpu = 'small'", "`default.gpu` names `small`, a profile for device: cpu"),
        ("[default]\ntpu = 'small'", "`default.tpu` is not a known key"),
        ("[default]\n[profile]", "`profile` is not a known key\nhint: did you mean `profiles`?"),
    ],
)
def test_a_wrong_value_is_refused_by_key(tmp_path: Path, more: str, told: str) -> None:
    with pytest.raises(ConfigError, match=f"^`specdec.toml`: {re.escape(told)}"):
        profile(tmp_path, more)


def test_a_profile_does_not_change_how_answers_are_counted(tmp_path: Path) -> None:
    """vLLM's `stream_interval` joins steps into one chunk, and a step's tokens are counted."""
    with pytest.raises(ConfigError, match=r"`profiles.small.engine_args.stream_interval` cannot"):
        profile(tmp_path, "engine_args = { stream_interval = 10 }")


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, " names neither `method` nor `model`"),
        ({"num_speculative_tokens": 4}, " names neither `method` nor `model`"),
        ({"method": 1}, ".method` is not a string: 1"),
        ({"model": ["m"]}, ".model` is not a string: ['m']"),
        ({"method": "ngram", "num_speculative_tokens": 0}, ".num_speculative_tokens` is not a who"),
        ({"method": "ngram", "prompt_lookup_min": True}, ".prompt_lookup_min` is not a whole numb"),
        ({"method": "ngram", "prompt_lookup_max": "4"}, ".prompt_lookup_max` is not a whole numbe"),
        (
            {"method": "ngram", "prompt_lookup_min": 5, "prompt_lookup_max": 4},
            ".prompt_lookup_min` is above `prompt_lookup_max`: 5 > 4",
        ),
    ],
)
def test_a_wrong_speculative_config(tmp_path: Path, config: dict[str, Any], told: str) -> None:
    pairs = ", ".join(
        f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}"
        for key, value in config.items()
    )
    text = re.sub(r"speculative_config = .*", f"speculative_config = {{ {pairs} }}", SMALL)
    place = "`specdec.toml`: `profiles.small.speculative_config"
    told = f"`{told}" if told.startswith(" ") else told
    with pytest.raises(ConfigError, match=f"^{re.escape(place + told)}"):
        read(tmp_path, text)


@pytest.mark.parametrize("key", ["device", "model", "speculative_config"])
def test_what_a_profile_must_say(tmp_path: Path, key: str) -> None:
    text = re.sub(rf"^{key} = .*$", "", SMALL, flags=re.MULTILINE)
    with pytest.raises(ConfigError, match=f"^`specdec.toml`: `profiles.small` lacks `{key}`: "):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "^`specdec.toml`: `profiles` holds no `\\[profiles.NAME\\]` table$"),
        ("[profiles]", "^`specdec.toml`: `profiles` holds no `\\[profiles.NAME\\]` table$"),
        ("profiles = 1", "^`specdec.toml`: `profiles` is not a table: 1$"),
        ("[profiles]\nsmall = 1", "^`specdec.toml`: `profiles.small` is not a table: 1$"),
        ("[profiles", "^`specdec.toml` cannot be read: Expected ']'"),
        (SMALL + SMALL, "^`specdec.toml` cannot be read: .*profiles.*small"),
    ],
)
def test_a_file_that_holds_no_profiles(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read(tmp_path, text)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"^no `specdec.toml` in: {tmp_path}\nhint: create it"):
        read_profiles(tmp_path / "specdec.toml")
    (tmp_path / "specdec.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"^`specdec.toml` cannot be read: 'utf-8' codec"):
        read_profiles(tmp_path / "specdec.toml")
    with pytest.raises(ConfigError, match=r"cannot be read: .*directory"):
        read_profiles(tmp_path)


def test_profiles_are_chosen_by_name(tmp_path: Path) -> None:
    profiles = read(tmp_path, SMALL + GPU)
    assert list(profiles.profiles) == ["small", "big"]
    assert profiles.chosen("big").name == "big"
    with pytest.raises(ConfigError, match=r"^no profile `bog` in `specdec.toml`\nhint: .*`big`"):
        profiles.chosen("bog")


@pytest.mark.parametrize(
    ("named", "chosen"),
    [
        ("", ["small"]),
        ('[default]\ncpu = "second"', ["second"]),
        ('[default]\ncpu = ["second", "small"]', ["second", "small"]),
    ],
)
def test_the_defaults_are_those_named_or_the_first(
    tmp_path: Path, named: str, chosen: list[str]
) -> None:
    profiles = read(tmp_path, SMALL + SMALL.replace("small", "second") + named)
    assert [each.name for each in profiles.defaults_for("cpu")] == chosen
    with pytest.raises(ConfigError, match=r'has no profile for device: gpu\nhint: .*`device = "gp'):
        profiles.defaults_for("gpu")


def test_this_repository_s_own_profiles_are_read() -> None:
    profiles = read_profiles(ROOT / "specdec.toml")
    assert profiles.defaults_for("cpu")[0].draft_model is None
    assert profiles.defaults_for("gpu")[0].requires.compute_capability == ("10.x", "12.x")
