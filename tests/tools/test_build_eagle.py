"""`tools/build_eagle.py`: what the folder of the head holds, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import build_eagle
from tools.model_folder import BuildError, digests_of

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")
OWN = {"fc.weight": (4, 8), "layers.0.self_attn.q_proj.weight": (4, 4)}


@pytest.fixture
def parts(tmp_path: Path) -> tuple[Path, Path]:
    """A tiny target's folder, and a tiny head."""
    target, head = tmp_path / "target", tmp_path / "head.safetensors"
    target.mkdir()
    (target / "config.json").write_text(json.dumps({"num_hidden_layers": 30, "hidden_size": 4}))
    own = {name: torch.rand(shape).to(torch.bfloat16) for name, shape in OWN.items()}
    safetensors.save_file(own, head)
    return target, head


def test_the_folder_has_the_head_s_own_weights_alone(
    tmp_path: Path, parts: tuple[Path, Path]
) -> None:
    target, head = parts
    folder = tmp_path / "eagle"
    folder.mkdir()
    build_eagle.write_eagle(folder, target=target, head=head)

    made, kept = (safetensors.load_file(path) for path in (folder / "model.safetensors", head))
    assert made.keys() == OWN.keys()
    for name, tensor in made.items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, kept[name].float())
    config = json.loads((folder / "config.json").read_text())
    assert config == {"num_hidden_layers": 1, "hidden_size": 4}
    assert {path.name for path in folder.iterdir()} == {"config.json", "model.safetensors"}


@pytest.mark.parametrize(
    ("missing", "hint"),
    [("target", "tools/build_model.py"), ("head", "git checkout tools/draft")],
)
def test_a_missing_part_is_named(
    tmp_path: Path, parts: tuple[Path, Path], missing: str, hint: str
) -> None:
    target, head = parts
    gone = target / "config.json" if missing == "target" else head
    gone.unlink()

    with pytest.raises(BuildError) as error:
        build_eagle.write_eagle(tmp_path, target=target, head=head)

    assert str(error.value).startswith(f"a part of the model is not here: {gone}\nhint: ")
    assert hint in str(error.value)


def test_what_is_accepted_is_what_is_built(
    tmp_path: Path, parts: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    target, head = parts

    def write_eagle(folder: Path) -> None:
        original(folder, target=target, head=head)

    original = build_eagle.write_eagle
    monkeypatch.setattr(build_eagle, "write_eagle", write_eagle)
    monkeypatch.setattr(build_eagle, "DIGESTS", tmp_path / "eagle.json")
    folder = tmp_path / "models" / "eagle"
    monkeypatch.setattr(build_eagle, "EAGLE", folder)

    assert build_eagle.main(["--accept"]) == 0
    assert build_eagle.main([]) == 0
    assert digests_of(folder) == json.loads(build_eagle.DIGESTS.read_text())
