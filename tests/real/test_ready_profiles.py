"""The files of ready profiles, most of which nobody here can run: the real vLLM takes each name and
value in them, and the pages tell of each."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.profile import Profile, Requires, read_profiles
from tests.real.standins import stand_in

ROOT = Path(__file__).resolve().parents[2]
FILES = ("methods", "blackwell")
READY = {
    f"{file}/{name}": profile
    for file in FILES
    for name, profile in read_profiles(ROOT / "profiles" / f"{file}.toml").profiles.items()
}
EAGLE3 = READY["blackwell/b200-eagle3"]


def speculating(**changed: Any) -> Profile:
    """`EAGLE3`, with other keys of its `speculative_config`."""
    return replace(EAGLE3, speculative_config={**EAGLE3.speculative_config, **changed})


def with_arguments(**arguments: Any) -> Profile:
    """`EAGLE3`, with these `engine_args` alone."""
    return replace(EAGLE3, engine_args=arguments)


# What is wrong with a profile, and what is said of it.
WRONG: dict[str, tuple[Profile, str]] = {
    "a key of speculation": (speculating(num_spec_tokens=4), "num_spec_tokens"),
    "a method": (speculating(method="eagle4"), "eagle4"),
    "drafts of no token": (speculating(num_speculative_tokens=0), "greater than 0"),
    "a draft's vocabulary": (
        speculating(method="draft_model", model="amd/PARD-Qwen3-0.6B"),
        "the same vocabulary size",
    ),
    "a draft's tensor parallelism": (
        speculating(draft_tensor_parallel_size=2),
        "cannot be other value than 1",
    ),
    "an engine argument": (with_arguments(max_model_length=8), "max_model_length"),
    "its type": (with_arguments(max_num_seqs="many"), "max_num_seqs"),
    "a quantization": (with_arguments(quantization="nvfp5"), "nvfp5"),
    "keys and values": (with_arguments(kv_cache_dtype="fp7"), "kv_cache_dtype"),
    "a context longer than the model's": (with_arguments(max_model_len=200000), "max_model_len"),
    "an attention backend": (with_arguments(attention_backend="FA9"), "FA9"),
    "a backend of another GPU": (
        replace(
            with_arguments(attention_backend="FLASHMLA"),
            requires=Requires(compute_capability=("10.x", "12.x")),
        ),
        "FLASHMLA does not support compute capability: 12.x",
    ),
    "a backend that is not invariant": (
        replace(
            with_arguments(attention_backend="FLASHMLA"),
            env={"VLLM_BATCH_INVARIANT": "1"},
        ),
        "FLASHMLA is not invariant to the batch",
    ),
    "an environment variable": (replace(EAGLE3, env={"VLLM_BATCH_INVARIENT": "1"}), "INVARIENT"),
}


def asked(profile: Profile, folder: Path) -> dict[str, Any]:
    """The profile, with a stand-in for each model of the hub."""
    config = dict(profile.speculative_config)
    if "model" in config:
        config["model"] = stand_in(config["model"], folder)
    model = profile.target_model
    if profile.device == "gpu":
        model = stand_in(profile.model, folder)
    return {
        "engine_args": {**profile.engine_args, "model": model},
        "speculative_config": config,
        "env": profile.env,
        "compute_capability": profile.requires.compute_capability,
    }


@pytest.fixture(scope="session")
def vllm_says(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """Of all profiles at once, since it takes long to import."""
    folder = tmp_path_factory.mktemp("hub")
    profiles = READY | {name: profile for name, (profile, _) in WRONG.items()}
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("accepts.py")],
        input=json.dumps({name: asked(each, folder) for name, each in profiles.items()}),
        capture_output=True,
        text=True,
        check=False,
        env={"HF_HUB_OFFLINE": "1", "PATH": "/usr/bin:/bin", "HOME": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    said: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


@pytest.mark.parametrize("name", READY)
def test_vllm_takes_a_ready_profile(name: str, vllm_says: Mapping[str, Any]) -> None:
    assert vllm_says["refused"][name] == []


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(name: str, vllm_says: Mapping[str, Any]) -> None:
    _, words = WRONG[name]
    assert words in "\n".join(vllm_says["refused"][name])


def test_the_guide_tells_of_each_method(vllm_says: Mapping[str, Any]) -> None:
    told = {method.split("`")[1]: profiles for method, profiles, *_ in rows("methods")}
    assert {*told} == {*vllm_says["methods"]}
    unknown = {name for name, is_known in vllm_says["methods"].items() if not is_known}
    assert unknown == {"mlp_speculator"} <= {name for name in told if told[name] == "none"}


@pytest.mark.parametrize("file", FILES)
def test_the_guide_has_a_row_for_each_profile(file: str) -> None:
    ours = read_profiles(ROOT / "profiles" / f"{file}.toml").profiles
    told = {name for row in rows(file) for cell in row[:2] for name in re.findall("`(.+?)`", cell)}
    assert {*ours} <= told


@pytest.mark.parametrize("name", READY)
def test_what_has_not_run_on_a_gpu_is_held_to_near_ties_alone(name: str) -> None:
    profile = READY[name]
    assert (profile.identity == "near-tie") is (profile.device == "gpu")


def rows(page: str) -> Iterator[list[str]]:
    """Of the first table of a guide."""
    text = (ROOT / "docs/guides" / f"{page}.md").read_text(encoding="utf-8")
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert table is not None
    for line in table[0].splitlines()[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]
