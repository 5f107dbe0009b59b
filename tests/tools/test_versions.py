"""The versions of vLLM that were tried are those that are asked for and named."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tools.try_versions import KNOWN

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("extra", ["vllm", "gpu"])
def test_an_extra_asks_for_the_oldest_or_a_later_one(extra: str) -> None:
    data = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert f"vllm>={KNOWN[0]}" in data["project"]["optional-dependencies"][extra]


def test_the_readme_names_all_of_them() -> None:
    *first, last = KNOWN
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"vLLM {', '.join(first)} and {last}." in text
