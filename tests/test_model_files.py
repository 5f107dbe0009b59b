"""Model folders: what is missing, and vocabularies that do not fit together."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.errors import ModelError
from pytest_specdec.model_files import check_folder, check_vocabulary
from pytest_specdec.profile import Profile

VOCAB = {"a": 0, "b": 1, "c": 2}


def profile(root: Path, *, setup: str | None = None) -> Profile:
    return Profile(
        name="small",
        root=root,
        device="cpu",
        model="m",
        speculative_config={"method": "ngram"},
        setup=setup,
    )


def model(
    folder: Path,
    *,
    config: Any = None,
    vocab: Any = VOCAB,
    added: list[dict[str, Any]] | None = None,
    tokenizer: Any = None,
) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config or {"vocab_size": 3}))
    given = {"model": {"vocab": vocab}, "added_tokens": added or []}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer or given))
    return folder


@pytest.mark.parametrize("weights", ["model.safetensors", "a.bin", "a.gguf", "a.pt"])
def test_a_whole_folder_passes(tmp_path: Path, weights: str) -> None:
    (tmp_path / "config.json").touch()
    (tmp_path / weights).touch()
    check_folder(str(tmp_path), profile(tmp_path))


def test_a_hub_name_is_left_to_the_engine(tmp_path: Path) -> None:
    check_folder("org/model", profile(tmp_path))


@pytest.mark.parametrize("setup", [None, "make it"])
@pytest.mark.parametrize(
    ("files", "told"),
    [
        (None, "no model folder"),
        ([], "the model folder has no `config.json`"),
        (["model.safetensors"], "the model folder has no `config.json`"),
        (["config.json", "tokenizer.json"], "the model folder has no weights"),
    ],
)
def test_what_is_missing_is_named_with_the_way_to_make_it(
    tmp_path: Path, files: list[str] | None, told: str, setup: str | None
) -> None:
    folder = tmp_path / "m"
    for name in files or ():
        folder.mkdir(exist_ok=True)
        (folder / name).touch()
    if files == []:
        folder.mkdir()
    hint = f"make it with: {setup}" if setup else "check `model` of profile `small`"
    expected = f"^profile `small`: {re.escape(told)}: {folder}\nhint: {re.escape(hint)}"
    with pytest.raises(ModelError, match=expected):
        check_folder(str(folder), profile(tmp_path, setup=setup))


def test_a_file_is_no_model_folder(tmp_path: Path) -> None:
    (tmp_path / "m").touch()
    with pytest.raises(ModelError, match="no model folder"):
        check_folder(str(tmp_path / "m"), profile(tmp_path))


@pytest.mark.parametrize(
    "draft",
    [
        {},
        {"vocab": {"c": 2, "b": 1, "a": 0}},
        # Unigram tokenizers hold tokens with scores, in the order of their ids.
        {"vocab": [["a", -1.0], ["b", -2.0], ["c", -3.0]]},
        {"vocab": {"a": 0, "b": 1}, "added": [{"content": "c", "id": 2}]},
        {"config": {"text_config": {"vocab_size": 3}}},
    ],
)
def test_equal_vocabularies_pass(tmp_path: Path, draft: dict[str, Any]) -> None:
    check_vocabulary(model(tmp_path / "target"), model(tmp_path / "draft", **draft))


@pytest.mark.parametrize(
    ("draft", "told"),
    [
        (
            {"config": {"vocab_size": 4}},
            "`vocab_size` is 3 in the target and 4 in the draft",
        ),
        (
            {"config": {"vocab_size": None, "text_config": None}},
            "`vocab_size` is 3 in the target and None in the draft",
        ),
        (
            {"vocab": {"a": 0, "b": 2, "c": 1}},
            "2 tokens differ; the first is 'b': id 1 in the target, 2 in the draft",
        ),
        (
            {"vocab": {"a": 0, "b": 1}},
            "1 tokens differ; the first is 'c': id 2 in the target, None in the draft",
        ),
        (
            {"vocab": {**VOCAB, "d": 3}},
            "1 tokens differ; the first is 'd': id None in the target, 3 in the draft",
        ),
        (
            {"added": [{"content": "a", "id": 7}]},
            "1 tokens differ; the first is 'a': id 0 in the target, 7 in the draft",
        ),
    ],
)
def test_other_vocabularies_are_refused(tmp_path: Path, draft: dict[str, Any], told: str) -> None:
    with pytest.raises(ModelError) as caught:
        check_vocabulary(model(tmp_path / "target"), model(tmp_path / "draft", **draft))
    assert str(caught.value) == (
        f"target and draft do not share a vocabulary: {told}\n"
        "hint: take a draft model of the target's own family"
    )


def test_without_a_tokenizer_file_the_sizes_are_all_there_is(tmp_path: Path) -> None:
    target = model(tmp_path / "target")
    draft = model(tmp_path / "draft", vocab={"x": 0, "y": 1, "z": 2})
    (draft / "tokenizer.json").unlink()
    check_vocabulary(target, draft)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("config.json", None, "^cannot be read: .*config.json\n"),
        ("config.json", "{", "^cannot be read: .*config.json\n"),
        ("config.json", "[1]", "^not a JSON object: .*config.json$"),
        ("tokenizer.json", "\ufeff", "^cannot be read: .*tokenizer.json\n"),
        ("tokenizer.json", "[]", "^not a JSON object: .*tokenizer.json$"),
        ("tokenizer.json", "{}", "^the tokenizer has no vocabulary to compare: .*tokenizer.json$"),
        ("tokenizer.json", '{"model": {"vocab": 3}}', "^the tokenizer has no vocabulary"),
        ("tokenizer.json", '{"model": {"vocab": [3]}}', "^the tokenizer has no vocabulary"),
    ],
)
def test_files_that_say_nothing_are_named(
    tmp_path: Path, name: str, text: str | None, told: str
) -> None:
    target, draft = model(tmp_path / "target"), model(tmp_path / "draft")
    if text is None:
        (draft / name).unlink()
    else:
        (draft / name).write_text(text)
    with pytest.raises(ModelError, match=told):
        check_vocabulary(target, draft)


def test_the_profile_s_own_models_are_what_is_checked(tmp_path: Path) -> None:
    with_draft = replace(profile(tmp_path), speculative_config={"model": "./d"}, model="./m")
    assert with_draft.target_model == str(tmp_path / "m")
    with pytest.raises(ModelError, match=f"no model folder: {tmp_path}/d\n"):
        check_folder(str(with_draft.draft_model), with_draft)
