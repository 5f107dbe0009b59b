"""Sizes of target and draft against each other and against the memory: every message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec import model_fit
from pytest_specdec.errors import HardwareError, ModelError
from pytest_specdec.hardware import Gpu
from pytest_specdec.model_fit import available_bytes, check_memory, draft_notes
from pytest_specdec.profile import Profile
from tests.weight_files import write_weights

MILLION = 1_000_000
GPU = Gpu(
    entry="0",
    uuid="GPU-aa11",
    name="NVIDIA B200",
    compute_capability="10.0",
    memory_gib=10.0,
    power_limit_w=None,
    is_mig=False,
)


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    return Profile(
        name="small",
        root=tmp_path,
        device="cpu",
        model="./target",
        speculative_config={"model": "./draft", "num_speculative_tokens": 3},
    )


def model(
    folder: Path, millions: int, *, dtype: str = "BF16", config: Mapping[str, Any] | None = None
) -> str:
    write_weights(folder / "model.safetensors", w=(dtype, [millions, MILLION]))
    (folder / "config.json").write_text(json.dumps(config or {}))
    return str(folder)


def notes(profile: Profile) -> list[str]:
    assert profile.draft_model is not None
    return draft_notes(profile, profile.draft_model)


def test_a_usual_draft_says_nothing(profile: Profile, tmp_path: Path) -> None:
    model(tmp_path / "target", 100)
    model(tmp_path / "draft", 20)
    assert notes(profile) == []


def test_a_large_draft_is_noted(profile: Profile, tmp_path: Path) -> None:
    model(tmp_path / "target", 135)
    model(tmp_path / "draft", 35)
    assert notes(profile) == [
        "the target is only 3.9 times as large as its draft model (135 million parameters to 35 "
        "million); 10 to 50 times is usual"
    ]


@pytest.mark.parametrize("millions", [100, 2000])
def test_a_draft_that_is_no_smaller_is_refused(
    profile: Profile, tmp_path: Path, millions: int
) -> None:
    model(tmp_path / "target", 100)
    model(tmp_path / "draft", millions)
    with pytest.raises(ModelError) as caught:
        notes(profile)
    assert str(caught.value) == (
        "profile `small`: the draft model is at least as large as the target, so it cannot pay: "
        f"{millions:,} million parameters to 100 million\n"
        "hint: take a smaller draft model, or exchange `model` and `speculative_config.model`; "
        'to gate its answers alone, set `gated = ["acceptance"]`'
    )


def test_where_speed_is_not_gated_it_is_a_note(profile: Profile, tmp_path: Path) -> None:
    model(tmp_path / "target", 100)
    model(tmp_path / "draft", 100)
    (note,) = notes(replace(profile, gated=("acceptance",)))
    assert "only 1.0 times as large" in note


def test_packed_weights_hide_parameters(profile: Profile, tmp_path: Path) -> None:
    """Eight of them in each number of 32 bits; the bytes tell."""
    model(tmp_path / "target", 10, dtype="I32")
    model(tmp_path / "draft", 12, dtype="I8")
    assert "3.3 times" in notes(profile)[0]


def test_a_mixture_of_experts_may_be_large(profile: Profile, tmp_path: Path) -> None:
    model(tmp_path / "target", 100)
    for config in ({"num_local_experts": 8}, {"text_config": {"n_routed_experts": 64}}):
        model(tmp_path / "draft", 200, config=config)
        assert "0.5 times" in notes(profile)[0]
    model(tmp_path / "draft", 200, config={"num_experts": 1})
    with pytest.raises(ModelError, match="cannot pay"):
        notes(profile)


@pytest.mark.parametrize("missing", ["target", "draft"])
def test_what_is_not_here_is_left_to_the_engine(
    profile: Profile, tmp_path: Path, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    model(tmp_path / "target", 1)
    model(tmp_path / "draft", 1)
    changed: Any = (
        {"model": "org/name"}
        if missing == "target"
        else {"speculative_config": {**profile.speculative_config, "model": "org/name"}}
    )
    there = replace(profile, **changed)
    assert notes(there) == []
    monkeypatch.setattr(model_fit, "available_bytes", lambda: 1)
    check_memory(there, there.draft_model)


@pytest.mark.parametrize(
    ("target", "draft", "told"),
    [
        (2, 2, None),
        ([1, 2], 2, None),
        ([1, 2], [2], None),
        (2, None, None),
        (2, 0, "`eos_token_id` is 2 in the target's `config.json` and 0 in the draft's: the draft "
         "does not end answers where the target does"),
        ([1, 2], 0, "`eos_token_id` is [1, 2] in the target's `config.json` and 0 in the draft's: "
         "the draft does not end answers where the target does"),
    ],
)  # fmt: skip
def test_other_ends_of_answers_are_noted(
    profile: Profile, tmp_path: Path, target: Any, draft: Any, told: str | None
) -> None:
    model(tmp_path / "target", 100, config={"eos_token_id": target})
    model(tmp_path / "draft", 10, config={"eos_token_id": draft})
    assert notes(profile) == ([] if told is None else [told])


def test_other_beginnings_are_noted(profile: Profile, tmp_path: Path) -> None:
    model(tmp_path / "target", 100, config={"text_config": {"bos_token_id": 1}})
    model(tmp_path / "draft", 10, config={"bos_token_id": 3})
    assert notes(profile) == [
        "`bos_token_id` is 1 in the target's `config.json` and 3 in the draft's: the draft has "
        "learned texts that begin otherwise"
    ]


def on_gpu(profile: Profile, monkeypatch: pytest.MonkeyPatch, **engine_args: Any) -> Profile:
    monkeypatch.setattr(model_fit, "visible_gpus", lambda: (GPU, GPU))
    return replace(profile, device="gpu", engine_args=engine_args)


def test_what_does_not_fit_the_gpu_is_refused(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model(tmp_path / "target", 2000)  # 3.7 GiB
    model(tmp_path / "draft", 500)  # 0.9 GiB
    there = on_gpu(profile, monkeypatch, gpu_memory_utilization=0.45)
    with pytest.raises(ModelError) as caught:
        check_memory(there, there.draft_model)
    assert str(caught.value) == (
        "profile `small`: the weights do not fit the GPU: target 3.7 GiB + draft 0.9 GiB; "
        "`gpu_memory_utilization` 0.45 of 10.0 GiB is 4.5 GiB for each engine\n"
        'hint: with `layout = "sequential"` one engine at a time can have a larger '
        "`gpu_memory_utilization`; otherwise more GPUs with `tensor_parallel_size`, or smaller or "
        "quantised models"
    )
    check_memory(there, None)


@pytest.mark.parametrize(
    "engine_args",
    [
        {"gpu_memory_utilization": 0.5},
        {},
        {"gpu_memory_utilization": 0.45, "tensor_parallel_size": 2},
        {"gpu_memory_utilization": 0.45, "quantization": "fp8"},
        {"gpu_memory_utilization": 0.45, "cpu_offload_gb": 4},
        {"gpu_memory_utilization": "much"},
    ],
)
def test_what_fits_the_gpu_or_may_fit_passes(
    profile: Profile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine_args: Mapping[str, Any],
) -> None:
    model(tmp_path / "target", 2000)
    model(tmp_path / "draft", 500)
    there = on_gpu(profile, monkeypatch, **engine_args)
    check_memory(there, there.draft_model)


def test_without_a_gpu_that_is_somebody_else_s_error(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model(tmp_path / "target", 20_000)

    def none() -> tuple[Gpu, ...]:
        raise HardwareError("no visible NVIDIA GPU")

    there = on_gpu(profile, monkeypatch)
    monkeypatch.setattr(model_fit, "visible_gpus", none)
    check_memory(there, None)


@pytest.mark.parametrize(
    ("layout", "dtype", "available_gib", "told"),
    [
        ("concurrent", "bfloat16", 8.4, None),
        (
            "concurrent",
            "bfloat16",
            8.3,
            "target 3.7 GiB + draft 0.9 GiB; with the baseline engine's target 8.4 GiB; available: "
            '8.3 GiB\nhint: set `layout = "sequential"`, which loads one engine at a time; or end '
            "what else uses memory, or take smaller models",
        ),
        ("sequential", "bfloat16", 4.7, None),
        (
            "sequential",
            "bfloat16",
            4.6,
            "target 3.7 GiB + draft 0.9 GiB; available: 4.6 GiB\nhint: end what else uses memory, "
            "or take smaller models",
        ),
        # Cast to twice the size.
        ("sequential", "float32", 9.2, "target 7.5 GiB + draft 1.9 GiB; available: 9.2 GiB\n"),
        ("sequential", "auto", 4.7, None),
        ("sequential", None, 4.7, None),
        ("sequential", None, None, None),
    ],
)
def test_what_does_not_fit_the_memory_is_refused(
    profile: Profile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    layout: Any,
    dtype: str | None,
    available_gib: float | None,
    told: str | None,
) -> None:
    model(tmp_path / "target", 2000)
    model(tmp_path / "draft", 500)
    available = None if available_gib is None else round(available_gib * 2**30)
    monkeypatch.setattr(model_fit, "available_bytes", lambda: available)
    there = replace(profile, layout=layout, engine_args={"dtype": dtype} if dtype else {})
    if told is None:
        check_memory(there, there.draft_model)
        return
    with pytest.raises(ModelError) as caught:
        check_memory(there, there.draft_model)
    assert str(caught.value).startswith(
        f"profile `small`: the weights do not fit the memory: {told}"
    )


@pytest.mark.parametrize(
    ("meminfo", "container", "available"),
    [
        ("MemTotal: 9 kB\nMemAvailable:    4 kB\n", {}, 4096),
        ("MemTotal: 9 kB\n", {}, None),
        (None, {}, None),
        ("MemAvailable: 4 kB\n", {"max": "max", "current": "5", "stat": ""}, 4096),
        ("MemAvailable: 4 kB\n", {"max": "5000", "current": "4000", "stat": "anon 1\n"}, 1000),
        # Files that were read lately are no loss.
        (
            "MemAvailable: 4 kB\n",
            {"max": "5000", "current": "4000", "stat": "inactive_file 300\nactive_file 70\n"},
            1370,
        ),
        (None, {"max": "5000", "current": "6000", "stat": ""}, 0),
    ],
)
def test_available_memory(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    meminfo: str | None,
    container: Mapping[str, str],
    available: int | None,
) -> None:
    monkeypatch.setattr(model_fit, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(model_fit, "CGROUP", tmp_path)
    if meminfo is not None:
        (tmp_path / "meminfo").write_text(meminfo)
    for name, text in container.items():
        (tmp_path / f"memory.{name}").write_text(text)
    assert available_bytes() == available
