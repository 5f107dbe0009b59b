"""`baseline` of a profile: what the baseline engine has for itself, and how each refusal reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_specdec.errors import ConfigError
from pytest_specdec.profile import BaselineEngine, Profile, read_profiles

SMALL = """
[profiles.small]
device = "cpu"
model = "org/target"
speculative_config = { method = "ngram", num_speculative_tokens = 4 }
"""
NGRAM = 'speculative_config = { method = "ngram", num_speculative_tokens = 3 }'


def profile(folder: Path, *table: str) -> Profile:
    path = folder / "specdec.toml"
    head = ("[profiles.small.baseline]",) if table else ()
    path.write_text("\n".join((SMALL, *head, *table)), encoding="utf-8")
    return read_profiles(path).chosen("small")


def test_without_the_table_the_baseline_engine_does_not_speculate(tmp_path: Path) -> None:
    plain = profile(tmp_path)
    assert (plain.baseline, plain.baseline_python) == (None, None)
    assert plain.speculation("baseline") is None
    assert plain.speculation("speculative") == plain.speculative_config
    assert plain.num_speculative_tokens("baseline") == 0
    assert plain.num_speculative_tokens("speculative") == 4


def test_both_engines_may_speculate(tmp_path: Path) -> None:
    both = profile(tmp_path, NGRAM)
    assert both.engine_arguments("baseline") == {
        "model": "org/target",
        "speculative_config": {"method": "ngram", "num_speculative_tokens": 3},
    }
    assert both.engine_arguments("speculative")["speculative_config"] == both.speculative_config
    assert both.num_speculative_tokens("baseline") == 3
    assert both.baseline_python is None


def test_how_long_a_draft_is_may_be_the_method_s_business(tmp_path: Path) -> None:
    both = profile(tmp_path, 'speculative_config = { method = "mtp" }')
    assert both.num_speculative_tokens("baseline") is None


def test_the_home_of_nobody_is_a_path_that_is_not_there(tmp_path: Path) -> None:
    named = profile(tmp_path, "python = '~no-such-user/python'")
    assert named.baseline_python == tmp_path / "~no-such-user/python"


@pytest.mark.parametrize(
    ("named", "is_beside_the_file"),
    [
        ("old/bin/python", True),
        ("./python", True),
        ("/old/bin/python", False),
        ("python3.12", False),
    ],
)
def test_its_interpreter_is_beside_the_file_or_on_path(
    tmp_path: Path, named: str, *, is_beside_the_file: bool
) -> None:
    old = profile(tmp_path, f'python = "{named}"')
    assert old.baseline == BaselineEngine(python=named)
    assert old.baseline_python == (tmp_path / named if is_beside_the_file else Path(named))
    assert old.speculation("baseline") is None


def test_its_draft_model_is_found_as_the_other_one(tmp_path: Path) -> None:
    (tmp_path / "org/draft").mkdir(parents=True)
    both = profile(tmp_path, 'speculative_config = { model = "org/draft" }')
    told = both.engine_arguments("baseline")["speculative_config"]["model"]
    assert told == str(tmp_path / "org/draft")
    assert both.draft_model is None


@pytest.mark.parametrize(
    ("table", "is_same"),
    [
        ('python = "old/bin/python"', True),  # its versions are data, as with `--specdec-python`
        (NGRAM, False),
        (NGRAM.replace("3", "4"), False),
    ],
)
def test_the_digest_is_of_what_engines_are_told(
    tmp_path: Path, table: str, *, is_same: bool
) -> None:
    assert (profile(tmp_path).digest == profile(tmp_path, table).digest) is is_same


def test_the_digest_of_a_profile_without_the_table_never_changes(tmp_path: Path) -> None:
    """Stored baselines and recordings carry it."""
    assert profile(tmp_path).digest == (
        "207a1003b079f0e63cf61740722f9a55379ffb36a0f82cdbcef9407df1cafcde"
    )


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("pyton = 'a/b'", ".pyton` is not a known key\nhint: did you mean `python`?"),
        ("engine_args = {}", ".engine_args` is not a known key"),
        ("python = 1", ".python` is not a string: 1"),
        ("python = ''", ".python` is empty\nhint: leave it out to share an interpreter"),
        ("python = ' '", ".python` is empty\nhint: leave it out to share an interpreter"),
        ("# nothing", "` is empty\nhint: set `python` or `speculative_config` in it, or leave it"),
        ("speculative_config = 1", ".speculative_config` is not a table: 1"),
        ("speculative_config = {}", ".speculative_config` names neither `method` nor `model`"),
        (
            "speculative_config = { method = 'ngram', num_speculative_tokens = 0 }",
            ".speculative_config.num_speculative_tokens` is not a whole number of at least 1: 0",
        ),
    ],
)
def test_a_wrong_table_is_refused_by_key(tmp_path: Path, table: str, told: str) -> None:
    place = "`specdec.toml`: `profiles.small.baseline"
    with pytest.raises(ConfigError, match=f"^{re.escape(place + told)}"):
        profile(tmp_path, table)
