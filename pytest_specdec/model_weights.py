"""How large a model is, by the headers of its safetensors files. Nothing is loaded for it.

Hub names are looked up where the hub keeps its files on this machine; what is not there is not
fetched. Floor 1.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEADER_LENGTH_BYTES = 8
# No header is longer: what says so is no safetensors file.
MAX_HEADER_BYTES = 100_000_000
# Those that vLLM casts to the engine's own; all others stay as they are stored.
CAST = frozenset({"F64", "F32", "F16", "BF16"})
BYTES_OF: Mapping[str, int] = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """All tensors of a model.

    Attributes:
        num_parameters: their elements; of packed, quantised weights there are fewer than the model
            has.
        num_bytes: as stored.
        num_cast: elements that vLLM casts to the engine's `dtype`.
        num_cast_bytes: of these, as stored.
    """

    num_parameters: int
    num_bytes: int
    num_cast: int
    num_cast_bytes: int

    def bytes_as(self, dtype: str | None) -> int:
        """In an engine of that `dtype`, such as `float32` or `torch.float32`; as stored where it
        says nothing of a size."""
        size = BYTES_OF.get((dtype or "").removeprefix("torch."))
        if size is None:
            return self.num_bytes
        return self.num_bytes - self.num_cast_bytes + self.num_cast * size


def read_weights(folder: Path | None) -> Weights | None:
    """Of a model's folder; `None` without safetensors files that can be read."""
    if folder is None:
        return None
    try:
        tensors = [each for path in _files(folder) for each in _tensors(path)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # vLLM says what is wrong with it
    if not tensors:
        return None
    cast = [each for each in tensors if each.is_cast]
    return Weights(
        num_parameters=sum(each.num_elements for each in tensors),
        num_bytes=sum(each.num_bytes for each in tensors),
        num_cast=sum(each.num_elements for each in cast),
        num_cast_bytes=sum(each.num_bytes for each in cast),
    )


def local_folder(
    model: str, *, env: Mapping[str, str] | None = None, revision: str | None = None
) -> Path | None:
    """The folder of a model on this machine: the folder that it names, or the hub's own of its
    name; `None` for one that was never fetched.

    Args:
        env: the engine's variables, beside this process's.
        revision: the hub's branch, tag or commit.
    """
    if (folder := Path(model)).is_absolute():
        return folder
    snapshots = _hub({**os.environ, **(env or {})}) / f"models--{model.replace('/', '--')}"
    revision = revision or "main"
    try:
        commit = (snapshots / "refs" / revision).read_text(encoding="utf-8").strip()
    except OSError:
        commit = revision
    found = snapshots / "snapshots" / commit
    return found if found.is_dir() else None


def _hub(env: Mapping[str, str]) -> Path:
    cache = env.get("XDG_CACHE_HOME") or Path(env.get("HOME", "/")) / ".cache"
    home = env.get("HF_HOME") or Path(cache) / "huggingface"
    return Path(env.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()


def _files(folder: Path) -> Iterable[Path]:
    """Those that an index names, where there is one: others may hold the same once more."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        named = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
        return [folder / name for name in sorted({*named})]
    found = sorted(folder.glob("*.safetensors"))
    return [path for path in found if not path.name.startswith("consolidated")] or found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tensor:
    num_elements: int
    num_bytes: int
    is_cast: bool


def _tensors(path: Path) -> Iterator[_Tensor]:
    for name, told in _header(path).items():
        if name != "__metadata__":
            start, end = told["data_offsets"]
            yield _Tensor(
                num_elements=math.prod(told["shape"]),
                num_bytes=end - start,
                is_cast=told["dtype"] in CAST,
            )


def _header(path: Path) -> Mapping[str, Any]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(HEADER_LENGTH_BYTES), "little")
        if length > MAX_HEADER_BYTES:
            raise ValueError(f"not a safetensors file: {path}")
        header: Mapping[str, Any] = json.loads(file.read(length))
    return header
