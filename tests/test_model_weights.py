"""How large models are, by headers that are made here; no weights stand behind them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.model_weights import local_folder, read_weights
from tests.weight_files import write_weights


def test_parameters_and_bytes_are_summed_over_files(tmp_path: Path) -> None:
    write_weights(tmp_path / "a.safetensors", a=("F32", [2, 3]), b=("BF16", [10]))
    write_weights(tmp_path / "b.safetensors", c=("I8", [5]), d=("F16", []))
    weights = read_weights(tmp_path)
    assert weights is not None
    assert weights.num_parameters == 6 + 10 + 5 + 1
    assert weights.num_bytes == 24 + 20 + 5 + 2


@pytest.mark.parametrize(
    ("dtype", "num_bytes"),
    [
        ("torch.float32", 16 * 4 + 5),
        ("float", 16 * 4 + 5),
        ("bfloat16", 16 * 2 + 5),
        ("half", 16 * 2 + 5),
        # As stored.
        ("auto", 24 + 20 + 5),
        (None, 24 + 20 + 5),
    ],
)
def test_an_engine_casts_what_has_a_point(
    tmp_path: Path, dtype: str | None, num_bytes: int
) -> None:
    tensors = {"a": ("F32", [2, 3]), "b": ("BF16", [10]), "c": ("I8", [5])}
    write_weights(tmp_path / "model.safetensors", **tensors)
    weights = read_weights(tmp_path)
    assert weights is not None
    assert weights.bytes_as(dtype) == num_bytes


def test_what_is_there_twice_counts_once(tmp_path: Path) -> None:
    for name in ("consolidated", "model"):
        write_weights(tmp_path / f"{name}.safetensors", a=("F32", [3]))
    weights = read_weights(tmp_path)
    assert weights is not None
    assert weights.num_parameters == 3
    (tmp_path / "model.safetensors").unlink()
    assert read_weights(tmp_path) == weights


def test_an_index_says_which_files_are_the_model(tmp_path: Path) -> None:
    for name in ("one", "two", "other"):
        write_weights(tmp_path / f"{name}.safetensors", **{name: ("F32", [3])})
    index = {
        "weight_map": {"one": "one.safetensors", "x": "two.safetensors", "two": "two.safetensors"}
    }
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    weights = read_weights(tmp_path)
    assert weights is not None
    assert weights.num_parameters == 6


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"model.bin": b"x"},
        {"model.safetensors": b""},
        {"model.safetensors": b"PK\x03\x04 not what it says"},
        {"model.safetensors": (5).to_bytes(8, "little") + b"[1,2]"},
        {"model.safetensors": (9).to_bytes(8, "little") + b'{"a": {}}'},
        {"model.safetensors": (2).to_bytes(8, "little") + b"{}"},
        {"model.safetensors.index.json": b"{}"},
        {"model.safetensors.index.json": b'{"weight_map": {"a": "gone.safetensors"}}'},
    ],
)
def test_what_cannot_be_read_is_left_to_the_engine(
    tmp_path: Path, files: Mapping[str, bytes]
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    assert read_weights(tmp_path) is None
    assert read_weights(None) is None


def test_a_folder_is_itself(tmp_path: Path) -> None:
    assert local_folder(str(tmp_path)) == tmp_path


@pytest.mark.parametrize(
    ("variable", "hub"),
    [
        ("HF_HUB_CACHE", "."),
        ("HF_HOME", "hub"),
        ("XDG_CACHE_HOME", "huggingface/hub"),
        ("HOME", ".cache/huggingface/hub"),
    ],
)
def test_a_hub_name_is_looked_up_where_the_hub_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, hub: str
) -> None:
    for name in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    kept = tmp_path / hub / "models--org--name"
    (kept / "snapshots" / "abc").mkdir(parents=True)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("abc\n")
    env: Any = {variable: str(tmp_path)}
    assert local_folder("org/name") is None
    assert local_folder("org/name", env=env) == (kept / "snapshots" / "abc")
    assert local_folder("org/name", env=env, revision="abc") == (kept / "snapshots" / "abc")
    assert local_folder("org/name", env=env, revision="other") is None
    assert local_folder("org/other", env=env) is None
