"""`worth_it` of a profile: what it becomes, the profile's variants, and how each refusal reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_specdec.errors import ConfigError
from pytest_specdec.profile import Profile, read_profiles
from pytest_specdec.worth_it_settings import WorthItSettings, changes_name

SMALL = """
[profiles.small]
device = "cpu"
model = "org/target"
speculative_config = { method = "ngram", num_speculative_tokens = 4, prompt_lookup_max = 4 }
"""


def profile(folder: Path, *more: str) -> Profile:
    path = folder / "specdec.toml"
    path.write_text("\n".join((SMALL, *more)), encoding="utf-8")
    return read_profiles(path).chosen("small")


def test_without_it(tmp_path: Path) -> None:
    settings = profile(tmp_path).worth_it
    assert settings == WorthItSettings()
    assert (settings.num_blocks, settings.min_gain) == (2, 1.0)
    assert (settings.must_gain, settings.speculative_configs) == ({}, ())


def test_all_that_it_can_say(tmp_path: Path) -> None:
    settings = profile(
        tmp_path,
        "[profiles.small.worth_it]",
        "num_blocks = 5",
        "min_gain = 1.1",
        "must_gain = { sql = [1, 4] }",
        "speculative_configs = [{ num_speculative_tokens = 1 }, { method = 'suffix' }]",
    ).worth_it
    assert settings == WorthItSettings(
        num_blocks=5,
        min_gain=1.1,
        must_gain={"sql": (1, 4)},
        speculative_configs=({"num_speculative_tokens": 1}, {"method": "suffix"}),
    )


def test_a_variant_is_the_profile_with_other_speculation(tmp_path: Path) -> None:
    small = profile(tmp_path)
    variant = small.variant({"num_speculative_tokens": 1, "prompt_lookup_min": 2})
    assert variant.name == "small@num_speculative_tokens=1,prompt_lookup_min=2"
    assert variant.speculative_config == {
        "method": "ngram",
        "num_speculative_tokens": 1,
        "prompt_lookup_min": 2,
        "prompt_lookup_max": 4,
    }
    assert (variant.model, variant.engine_args) == (small.model, small.engine_args)
    assert variant.digest != small.digest


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"model": "org/draft-1B"}, "model=draft-1B"),
        ({"model": ".models/draft/"}, "model=draft"),
        ({"disable_padded_drafter_batch": True}, "disable_padded_drafter_batch=true"),
        ({"a": [1, {"b": "c/d"}]}, "a=1-b-c-d"),
    ],
)
def test_the_name_of_a_change(changes: dict[str, object], name: str) -> None:
    assert changes_name(changes) == name


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("min_gian = 1", "min_gian` is not a known key\nhint: did you mean `min_gain`?"),
        ("num_blocks = 0", "num_blocks` is below 1: 0"),
        ("min_gain = 0", "min_gain` is below 0.01: 0"),
        ("must_gain = [1]", "must_gain` is not a table: [1]"),
        ("must_gain = { sql = 1 }", "must_gain.sql` is not a list: 1"),
        ("must_gain = { sql = ['1'] }", "must_gain.sql` is not a whole number: '1'"),
        (
            "must_gain = { sql = [] }",
            "must_gain.sql` is empty\nhint: name requests in flight, or leave it out",
        ),
        ("must_gain = { sql = [0] }", "must_gain.sql` is below 1: 0"),
        ("must_gain = { sql = [1, 2, 1] }", "must_gain.sql` names one twice: 1"),
        ("speculative_configs = [2]", "speculative_configs` is not a table: 2"),
        (
            "speculative_configs = [{}]",
            "speculative_configs.0` changes nothing\n"
            "hint: the profile itself always is measured; leave it out",
        ),
        (
            "speculative_configs = [{ num_speculative_tokens = 4 }]",
            "speculative_configs.0` changes nothing\nhint: ",
        ),
        (
            "speculative_configs = [{ prompt_lookup_min = 1 }, { prompt_lookup_min = 1 }]",
            "speculative_configs.1` is there twice\n"
            "hint: each has engines of its own; leave one out",
        ),
        (
            "speculative_configs = [{ model = 'a/draft' }, { model = 'b/draft' }]",
            "speculative_configs.1` has the name of another one: `model=draft`",
        ),
        (
            "speculative_configs = [{ num_speculative_tokens = 0 }]",
            "speculative_configs.0.num_speculative_tokens` is not a whole number of at least 1: 0",
        ),
        (
            "speculative_configs = [{ prompt_lookup_min = 5 }]",
            "speculative_configs.0.prompt_lookup_min` is above `prompt_lookup_max`: 5 > 4",
        ),
    ],
)
def test_refuses(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        profile(tmp_path, "[profiles.small.worth_it]", line)
    assert str(caught.value).startswith(f"`specdec.toml`: `profiles.small.worth_it.{said}")
