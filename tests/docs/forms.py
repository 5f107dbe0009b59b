"""Every form of block that the documentation has, and what runs it.

To show something new, use a form that is here, or add a row: what tells the form, and a function
that fails where the block is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from ruamel.yaml import YAML

from pytest_specdec.report.summary import COLUMNS
from pytest_specdec.workload import HEADER_FIELDS, PROMPT_FIELDS
from tests.docs import data_blocks, test_import_export
from tests.docs.blocks import ROOT, Block, assert_none
from tests.docs.reader import Reader
from tests.docs.session_output import PREFIX, check_output, is_written
from tests.docs.shell import COMMANDS, type_line
from tests.workflow_files import refused_by_schema

PACKAGE = ROOT / "pytest_specdec"


@dataclass(frozen=True, slots=True)
class Form:
    """One form of block.

    Attributes:
        languages: any of which stands behind the fence; empty where none does.
        fits: what tells it from others of that language.
        run: fails where the block is wrong.
    """

    name: str
    languages: tuple[str, ...]
    fits: Callable[[Block], Any]
    run: Callable[[Block, Reader], None]


def form_of(block: Block) -> Form | None:
    """The first that fits."""
    fitting = (each for each in FORMS if block.language in each.languages and each.fits(block))
    return next(fitting, None)


def is_shell(block: Block) -> bool:
    first = command_lines(block)[:1]
    return bool(first) and PurePath((first[0].split() or [""])[0]).name in COMMANDS


def command_lines(block: Block) -> list[str]:
    """Of a shell; in a `console` those behind a `$`."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [line for line in lines if line.strip()]


def shell(block: Block, reader: Reader) -> None:
    for line in command_lines(block):
        type_line(reader, line)


def console(block: Block, reader: Reader) -> None:
    shell(block, reader)
    check_output([line for line in block.lines if not line.startswith("$ ")])


def output(block: Block, reader: Reader) -> None:
    check_output(block.lines)


def of_import(block: Block, reader: Reader) -> None:
    """That page's examples have a test that holds them to every character."""
    said = {text for _, text in test_import_export.FILES}
    said |= {f"$ pytest-specdec {line}\n{text}" for line, text in test_import_export.EXAMPLES}
    assert block.text in said, "`test_import_export` does not see it"


def is_example_of_import(block: Block) -> bool:
    return block.page == f"docs/{test_import_export.PAGE}"


def github(block: Block, reader: Reader) -> None:
    """Steps that GitHub's schema takes, in a job, and whose lines a reader can type."""
    steps = yaml(block)
    jobs = {"gate": {"runs-on": "ubuntu-latest", "steps": steps}}
    check_pipeline(reader, {"on": "push", "jobs": jobs}, schema="vendor.github-workflows")
    for step in steps:
        for line in step.get("run", "").splitlines():
            type_line(reader, line)


def gitlab(block: Block, reader: Reader) -> None:
    """A pipeline that GitLab's schema takes, and whose lines a reader can type."""
    jobs = yaml(block)
    check_pipeline(reader, jobs, schema="vendor.gitlab-ci")
    for line in (line for job in jobs.values() for line in job["script"]):
        type_line(reader, line)


def check_pipeline(reader: Reader, data: Any, *, schema: str) -> None:
    path = reader.project.folder / "pipeline.yml"
    with path.open("w", encoding="utf-8") as file:
        YAML(typ="safe", pure=True).dump(data, file)
    assert_none(refused_by_schema(path, schema=schema).splitlines(), f"not of {schema}")


def yaml(block: Block) -> Any:
    return YAML(typ="safe", pure=True).load(block.text)


def groovy(block: Block, reader: Reader) -> None:
    """What its `sh` steps type, in the environment of `withEnv`."""
    for name, value in re.findall(r"withEnv\(\['(\w+)=(\w+)'\]\)", block.text):
        reader.project.env(**{name: value})
    lines = re.findall(r"\bsh '([^']+)'", block.text)
    assert lines, "no `sh` step"
    for line in lines:
        type_line(reader, line)


def contents(block: Block, reader: Reader) -> None:
    """Pages that there are."""
    named = [line for line in block.lines if line and not line.startswith(":")]
    folder = (ROOT / block.page).parent
    assert_none((each for each in named if not [*folder.glob(f"{each}.md")]), "no such page")


def diagram(block: Block, reader: Reader) -> None:
    """The rooms in its last column are there."""
    rooms = [room for line in block.lines for room in re.split(r" {2,}", line)[-1].split(", ")]
    assert_none((each for each in rooms if not [*found(each)]), "no such room")


def found(room: str) -> Iterator[Any]:
    name = room.rstrip("/")
    yield from PACKAGE.rglob(name if room.endswith("/") else f"{PurePath(name).name}.py")


def top_keys(block: Block) -> set[str]:
    return {key for each in data_blocks.objects(block.text) for key in each}


def is_printed(block: Block) -> bool:
    """Where no language says so, the first line does."""
    first = block.text.partition("\n")[0]
    return block.language == "text" or first.startswith((PREFIX, COLUMNS[0])) or is_written(first)


def is_json_schema(block: Block) -> bool:
    return bool(top_keys(block) & {"type", "$schema"})


def is_of_workload(block: Block) -> bool:
    """A header, a prompt, or fields of one."""
    return top_keys(block) <= HEADER_FIELDS | PROMPT_FIELDS and not is_json_schema(block)


def starts(*words: str) -> Callable[[Block], bool]:
    """Whether the first line begins so."""
    return lambda block: block.text.startswith(words)


def is_diagram(block: Block) -> bool:
    return all("->" in line for line in block.lines)


FORMS = (
    Form("what import and export say", ("", "json", "console"), is_example_of_import, of_import),
    Form("a shell's lines", ("", "sh"), is_shell, shell),
    Form("lines of a shell, and what they print", ("console",), is_shell, console),
    Form("what is printed", ("", "text"), is_printed, output),
    Form(
        "profiles",
        ("toml",),
        starts("[profiles.", "[[profiles.", "[default]"),
        data_blocks.profiles,
    ),
    Form("ini settings", ("toml", "ini"), starts("[tool.pytest", "[pytest]"), data_blocks.ini),
    Form("a workload, or a part of one", ("json",), is_of_workload, data_blocks.workload),
    Form("a JSON Schema", ("json",), is_json_schema, data_blocks.json_schema),
    Form("tests", ("python",), lambda block: "def test" in block.text, data_blocks.tests),
    Form("a program", ("python",), starts("import ", "from "), data_blocks.program),
    Form("steps of GitHub Actions", ("yaml",), starts("- "), github),
    Form("a pipeline of GitLab", ("yaml",), lambda block: "script:" in block.text, gitlab),
    Form("steps of Jenkins", ("groovy",), lambda block: "sh '" in block.text, groovy),
    Form("a table of contents", ("{toctree}",), lambda block: True, contents),
    Form("a diagram of rooms", ("",), is_diagram, diagram),
)
