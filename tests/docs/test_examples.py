"""Every example of the documentation is run: `forms` says what runs which."""

from __future__ import annotations

import re

import pytest
from jsonschema import SchemaError

from pytest_specdec.errors import SpecdecError
from pytest_specdec.report.summary import COLUMNS
from tests.docs.blocks import BLOCKS, Block, blocks_of
from tests.docs.forms import form_of
from tests.docs.reader import UPDATE, Reader
from tests.docs.session_output import check_output
from tests.fake_engine.project import Project


@pytest.fixture
def reader(project: Project, monkeypatch: pytest.MonkeyPatch) -> Reader:
    return Reader(project=project, monkeypatch=monkeypatch)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_an_example(block: Block, reader: Reader) -> None:
    run_example(block, reader)


def run_example(block: Block, reader: Reader) -> None:
    """Runs it by the form that it has."""
    form = form_of(block)
    assert form is not None, (
        f"{block}: no test knows a block of this form; its language: {block.language or 'none'}\n"
        "hint: say its language behind the fence, or give `FORMS` in tests/docs/forms.py a row"
    )
    form.run(block, reader)


# One of each form, with one thing wrong in it.
BROKEN = [
    ("", "pytest suites --specdec-gpus", "unrecognized arguments"),
    ("", "pytest suites --update-baselines=old", "neither `all` nor `new`"),
    ("sh", "pytest suits", "not found"),
    ("", "make demo\nmake demos", "demos"),
    ("", "pip install './pytest-specdec[gpus]'", "gpus"),
    ("", ".venv/bin/python benchmarks/power.py --plots", "--plots"),
    ("", "python tools/reference_table.py", "No such file"),
    ("", "git ad baselines", "not a git command"),
    ("", "pytest suites\nuv pip list", "no test knows this command"),
    ("", "pytest-specdec report report/report.json --pdf", "2"),
    ("console", "$ pytest-specdec compare old new\nall is well", "no session prints"),
    ("", "specdec: profiles cpu", "no session prints"),
    ("text", "  ".join(COLUMNS[:-1]), "no session prints"),
    ("toml", "[profiles.mine]\nengine_arg = {}", "engine_arg"),
    ("toml", '[[profiles.mine.known_defects]]\ncheck = "identica"', "known_defects"),
    ("ini", "[pytest]\nspecdec_pyton = python", "specdec_pyton"),
    ("toml", '[tool.pytest.ini_options]\nspecdec_suite = ["suites"]', "specdec_suite"),
    ("json", '{"workload": {"concurency": 4}}', "concurency"),
    ("json", '{"id": "one", "messages": [], "max_tokens": 4}', "messages"),
    ("json", '{"expect": {"sqlite": {}}}', "sqlite"),
    ("json", '{"type": "strings"}', "strings"),
    ("python", "def test_it(run): pass", "'run' not found"),
    ("python", 'import json\nprint(json.load(open("a/report.json"))["profile"])', "KeyError"),
    ("python", "report()", "no test knows"),
    ("yaml", "- runs: pytest suites", "runs"),
    ("yaml", "- run: pytest suites --specdec", "--specdec"),
    ("yaml", "gate:\n  script: [pytest suites]\n  artifact: {}", "artifact"),
    ("groovy", "sh 'pytest suites --junitxm'", "--junitxm"),
    ("{toctree}", "guides/nowhere", "guides/nowhere"),
    ("", "Profile  ->  Engine  nowhere", "nowhere"),
    ("rust", "fn main() {}", "page.md:1: no test knows a block of this form; its language: rust"),
    ("", "anything", "its language: none"),
    ("json", '{"anything": 1}', "no test knows"),
]


@pytest.mark.parametrize(("language", "text", "said"), BROKEN)
def test_what_is_wrong_is_seen(language: str, text: str, said: str, reader: Reader) -> None:
    (block,) = blocks_of("page.md", f"```{language}\n{text}\n```\n")
    with pytest.raises(
        (AssertionError, SpecdecError, OSError, SchemaError, SystemExit), match=re.escape(said)
    ):
        run_example(block, reader)


def test_what_a_session_prints_is_seen_as_that(reader: Reader) -> None:
    reader.session(["suites"], UPDATE)
    result = reader.project.run("suites")
    assert result.section
    check_output([line for line in result.lines if line.startswith("specdec: ")])
    check_output(result.section)
