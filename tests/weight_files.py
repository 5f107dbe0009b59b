"""Safetensors files that are a header and nothing else: what is only counted needs no more."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SIZES = {"F32": 4, "I32": 4, "BF16": 2, "F16": 2, "I8": 1}


def write_weights(path: Path, **tensors: tuple[str, Sequence[int]]) -> None:
    """Tensors by name, each with its dtype and shape."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape) in tensors.items():
        start, end = end, end + SIZES[dtype] * math.prod(shape)
        header[name] = {"dtype": dtype, "shape": [*shape], "data_offsets": [start, end]}
    told = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(told).to_bytes(8, "little") + told)
