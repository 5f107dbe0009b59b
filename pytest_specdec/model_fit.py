"""Whether a target and its draft are of a size for each other, and for the memory that is here.
Judged by files alone, before anything is loaded. Floor 1.

What can never be is refused; what is only unusual is a note, and the session goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_specdec.errors import HardwareError, ModelError
from pytest_specdec.hardware import visible_gpus
from pytest_specdec.model_weights import Weights, local_folder, read_weights
from pytest_specdec.profile import Profile

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
CACHED = ("inactive_file", "active_file")
GIB = 2**30
USUAL_RATIO = (10, 50)
# Below this a draft model's steps are too dear for most acceptance rates.
SMALL_RATIO = 5.0
# vLLM's own default for `gpu_memory_utilization`.
UTILIZATION = 0.92
# With one of these an engine holds less than its files say, or elsewhere.
HOLDS_LESS = ("quantization", "cpu_offload_gb", "offload_backend", "hf_overrides")
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
TOKENS = {
    "eos_token_id": "the draft does not end answers where the target does",
    "bos_token_id": "the draft has learned texts that begin otherwise",
}


def size_ratio(target: Weights, draft: Weights) -> float:
    """How many times larger the target is, by parameters or by bytes, whichever is more: packed,
    quantised weights hide parameters, and a wide type swells bytes."""
    return max(
        target.num_parameters / draft.num_parameters, target.num_bytes / max(1, draft.num_bytes)
    )


def draft_notes(profile: Profile, draft: str) -> list[str]:
    """What is unusual about a draft model.

    Args:
        draft: a folder or a hub name; where its files are not here nothing is said.

    Raises:
        ModelError: it is at least as large as the target, in a profile whose speedup is gated.
    """
    folders = _target(profile), local_folder(draft, env=profile.env)
    notes = [*_token_notes(*folders)]
    target_weights, draft_weights = map(read_weights, folders)
    if target_weights is None or draft_weights is None:
        return notes
    ratio = size_ratio(target_weights, draft_weights)
    if ratio <= 1 and "speedup" in profile.gated and not _has_experts(folders[1]):
        raise ModelError(
            f"profile `{profile.name}`: the draft model is at least as large as the target, so it "
            f"cannot pay: {_millions(draft_weights)} parameters to {_millions(target_weights)}",
            hint="take a smaller draft model, or exchange `model` and `speculative_config.model`; "
            'to gate its answers alone, set `gated = ["acceptance"]`',
        )
    if ratio < SMALL_RATIO:
        low, high = USUAL_RATIO
        notes.append(
            f"the target is only {ratio:.1f} times as large as its draft model "
            f"({_millions(target_weights)} parameters to {_millions(draft_weights)}); {low} to "
            f"{high} times is usual"
        )
    return notes


def check_memory(profile: Profile, draft: str | None) -> None:
    """Refuses models whose weights alone are more than the memory that is here.

    Args:
        draft: the speculative engine's draft model, if it has one.

    Raises:
        ModelError: with the numbers.
    """
    if any(profile.engine_args.get(key) for key in HOLDS_LESS):
        return
    folders = {"target": _target(profile)}
    if draft is not None:
        folders["draft"] = local_folder(draft, env=profile.env)
    sizes = {}
    for what, folder in folders.items():
        if (weights := read_weights(folder)) is None:
            return  # left to the engine
        sizes[what] = _held(weights, profile.engine_args.get("dtype"))
    told = " + ".join(f"{what} {size / GIB:.1f} GiB" for what, size in sizes.items())
    if profile.device == "gpu":
        _check_gpu(profile, sum(sizes.values()), told)
    else:
        _check_cpu(profile, sum(sizes.values()), sizes["target"], told)


def _held(weights: Weights, dtype: Any) -> int:
    """By itself vLLM takes two bytes for what is stored in four."""
    if dtype in (None, "auto"):
        return min(weights.num_bytes, weights.bytes_as("bfloat16"))
    return weights.bytes_as(str(dtype))


def _check_gpu(profile: Profile, needed: int, told: str) -> None:
    try:
        gpus = visible_gpus()[: profile.num_gpus]
    except HardwareError:
        return  # told by whoever needs one
    share = profile.engine_args.get("gpu_memory_utilization", UTILIZATION)
    if not isinstance(share, (int, float)):
        return
    total_gib = sum(gpu.memory_gib for gpu in gpus)
    if needed <= total_gib * share * GIB:
        return
    raise ModelError(
        f"profile `{profile.name}`: the weights do not fit the GPU: {told}; "
        f"`gpu_memory_utilization` {share:g} of {total_gib:.1f} GiB is "
        f"{total_gib * share:.1f} GiB for each engine",
        hint='with `layout = "sequential"` one engine at a time can have a larger '
        "`gpu_memory_utilization`; otherwise more GPUs with `tensor_parallel_size`, or smaller or "
        "quantised models",
    )


def _check_cpu(profile: Profile, needed: int, target: int, told: str) -> None:
    available = available_bytes()
    is_concurrent = profile.layout == "concurrent"
    needed += target if is_concurrent else 0
    if available is None or needed <= available:
        return
    both = f"; with the baseline engine's target {needed / GIB:.1f} GiB" if is_concurrent else ""
    layout = 'set `layout = "sequential"`, which loads one engine at a time; or ' * is_concurrent
    raise ModelError(
        f"profile `{profile.name}`: the weights do not fit the memory: {told}{both}; available: "
        f"{available / GIB:.1f} GiB",
        hint=f"{layout}end what else uses memory, or take smaller models",
    )


def available_bytes() -> int | None:
    """Memory that new processes may have: the machine's, or what its container leaves; `None` where
    neither can be read."""
    found = [each for each in (_available(), _left_in_container()) if each is not None]
    return min(found, default=None)


def _available() -> int | None:
    try:
        lines = MEMINFO.read_text(encoding="utf-8").splitlines()
        told = dict(line.split(":", 1) for line in lines)
        return int(told["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError):
        return None


def _left_in_container() -> int | None:
    try:
        limit = int((CGROUP / "memory.max").read_text(encoding="utf-8"))
        used = int((CGROUP / "memory.current").read_text(encoding="utf-8"))
        told = (CGROUP / "memory.stat").read_text(encoding="utf-8").splitlines()
        # Files that were read lately count as used, and are given up when memory is wanted.
        cached = sum(int(line.split()[1]) for line in told if line.split()[0] in CACHED)
    except (OSError, ValueError, IndexError):
        return None
    return max(0, limit - used + cached)


def _target(profile: Profile) -> Path | None:
    return local_folder(
        profile.target_model, env=profile.env, revision=profile.engine_args.get("revision")
    )


def _token_notes(target: Path | None, draft: Path | None) -> Iterator[str]:
    ids = [_config(folder) for folder in (target, draft)]
    for key, meaning in TOKENS.items():
        of_target, of_draft = (_set(config.get(key)) for config in ids)
        if of_target and of_draft and not of_target & of_draft:
            yield (
                f"`{key}` is {ids[0][key]} in the target's `config.json` and {ids[1][key]} in the "
                f"draft's: {meaning}"
            )


def _set(value: Any) -> set[Any]:
    return {*value} if isinstance(value, list) else {value} - {None}


def _has_experts(folder: Path | None) -> bool:
    """A step of such a model reads a part of its weights only."""
    return any((_config(folder).get(key) or 0) > 1 for key in EXPERTS)


def _config(folder: Path | None) -> Mapping[str, Any]:
    """Multimodal configurations keep the text model's one level down."""
    try:
        config = json.loads(((folder or Path()) / "config.json").read_text(encoding="utf-8"))
        return {**(config.get("text_config") or {}), **config} if folder is not None else {}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _millions(weights: Weights) -> str:
    return f"{weights.num_parameters / 1e6:,.0f} million"
