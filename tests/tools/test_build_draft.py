"""`tools/build_draft.py`: what is joined, what is missing, and that another draft is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import build_draft
from tools.model_folder import BuildError, digest_of, make_whole

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")
OWN = {
    "model.norm.weight": (4,),
    "model.layers.0.a.weight": (2, 4),
    "model.layers.1.a.weight": (4,),
}


@pytest.fixture
def parts(tmp_path: Path) -> tuple[Path, Path]:
    """A tiny target, and the layers of a tiny draft."""
    target, layers = tmp_path / "target", tmp_path / "layers.safetensors"
    target.mkdir()
    embeddings = torch.rand(8, 4)
    safetensors.save_file(
        {build_draft.EMBEDDINGS: embeddings, "model.layers.0.a.weight": torch.rand(9, 9)},
        target / "model.safetensors",
    )
    own = {name: torch.rand(shape).to(torch.bfloat16) for name, shape in OWN.items()}
    safetensors.save_file(own, layers)
    (target / "config.json").write_text(json.dumps({"num_hidden_layers": 30, "vocab_size": 8}))
    for name in build_draft.OF_THE_TARGET:
        (target / name).write_text(name)
    return target, layers


def test_the_draft_has_its_own_layers_and_the_target_s_embeddings(
    tmp_path: Path, parts: tuple[Path, Path]
) -> None:
    target, layers = parts
    folder = tmp_path / "draft"
    folder.mkdir()
    build_draft.write_draft(folder, target=target, layers=layers)

    joined = safetensors.load_file(folder / "model.safetensors")
    assert joined.keys() == {*OWN, build_draft.EMBEDDINGS}
    assert {tensor.dtype for tensor in joined.values()} == {torch.float32}
    of_target = safetensors.load_file(target / "model.safetensors")[build_draft.EMBEDDINGS]
    assert torch.equal(joined[build_draft.EMBEDDINGS], of_target)
    kept = safetensors.load_file(layers)["model.layers.1.a.weight"]
    assert torch.equal(joined["model.layers.1.a.weight"], kept.float())
    config = json.loads((folder / "config.json").read_text())
    assert config == {"num_hidden_layers": 2, "vocab_size": 8}
    assert (folder / "tokenizer.json").read_text() == "tokenizer.json"


@pytest.mark.parametrize(
    ("missing", "hint"),
    [("target", "tools/build_model.py"), ("layers", "git checkout tools/draft")],
)
def test_a_missing_part_is_named(
    tmp_path: Path, parts: tuple[Path, Path], missing: str, hint: str
) -> None:
    target, layers = parts
    gone = target / "model.safetensors" if missing == "target" else layers
    gone.unlink()

    with pytest.raises(BuildError) as error:
        build_draft.write_draft(tmp_path, target=target, layers=layers)

    assert str(error.value).startswith(f"a part of the model is not here: {gone}\nhint: ")
    assert hint in str(error.value)


def test_another_draft_is_refused(tmp_path: Path, parts: tuple[Path, Path]) -> None:
    target, layers = parts
    expected = tmp_path / "draft.json"
    expected.write_text(json.dumps({"model.safetensors": digest_of(layers)}))

    with pytest.raises(BuildError, match="the model built here is not the expected one: "):
        make_whole(
            tmp_path / "made" / "draft",
            digests=expected,
            write=lambda part: build_draft.write_draft(part, target=target, layers=layers),
        )

    assert [*(tmp_path / "made").iterdir()] == []
