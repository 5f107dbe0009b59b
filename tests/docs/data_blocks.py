"""Blocks of data and of Python, each read or run by what reads it in earnest."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from jsonschema import Draft202012Validator

from pytest_specdec.profile import read_profiles
from pytest_specdec.workload import HEADER_FIELDS, read_workload
from tests.docs.blocks import Block, assert_none
from tests.docs.reader import UPDATE, Reader

PROFILE = {
    "device": '"gpu"',
    "model": '"org/target-model"',
    "speculative_config": '{ method = "ngram", num_speculative_tokens = 4 }',
}
ASKED = {"messages": [{"role": "user", "content": "Go on."}], "max_tokens": 96}
NUM_ASKED = 16  # enough for whatever a header says of requests in flight


def profiles(block: Block, reader: Reader) -> None:
    """As a part of a whole `specdec.toml`."""
    path = reader.project.file("specdec.toml", whole_profiles(block.text)).folder / "specdec.toml"
    assert read_profiles(path).profiles.keys() == tomllib.loads(block.text)["profiles"].keys()


def whole_profiles(text: str) -> str:
    """The text, with what each of its profiles must have besides."""
    for name, table in tomllib.loads(text)["profiles"].items():
        needed = "".join(f"{key} = {PROFILE[key]}\n" for key in PROFILE.keys() - table.keys())
        heading = f"[profiles.{name}]\n"
        if heading in text:
            text = text.replace(heading, heading + needed)
        else:
            text = heading + needed + text
    return text


def ini(block: Block, reader: Reader) -> None:
    """By pytest, to which an unknown setting is an error here."""
    is_toml = block.language == "toml"
    (reader.project.folder / "pytest.ini").unlink()
    reader.project.file("pyproject.toml" if is_toml else "pytest.ini", block.text)
    result = reader.project.run("--collect-only", "--strict-config", "-p", "pytest_specdec.plugin")
    assert result.exit_code in {0, 5}, result.text


def workload(block: Block, reader: Reader) -> None:
    """As a whole file, or put into one: a header, or fields of a prompt, may be shown alone."""
    shown = objects(block.text)
    if shown[-1].keys() <= HEADER_FIELDS:
        shown += [{"id": f"asked-{number}", **ASKED} for number in range(NUM_ASKED)]
    elif "messages" not in shown[-1]:
        shown = [{"id": f"asked-{number}", **ASKED, **each} for number, each in enumerate(shown)]
    text = "\n".join(map(json.dumps, shown)) + "\n"
    reader.project.file("suites/shown.jsonl", text)
    read = read_workload(reader.project.folder / "suites/shown.jsonl")
    assert len(read.prompts) == sum("messages" in each for each in shown)


def json_schema(block: Block, reader: Reader) -> None:
    """By jsonschema, and as what a prompt's answer must be."""
    (schema,) = objects(block.text)
    Draft202012Validator.check_schema(schema)
    part = json.dumps({"expect": {"json_schema": schema}})
    workload(replace(block, text=part), reader)


def objects(text: str) -> list[dict[str, Any]]:
    """One object over several lines, or one in each."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


def program(block: Block, reader: Reader) -> None:
    """By itself, on the report that it names."""
    for path in re.findall(r'"([\w./-]*report\.json)"', block.text):
        reader.session(["suites", f"--specdec-report={PurePath(path).parent}"], UPDATE)
    reader.project.file("shown.py", block.text)
    command = [sys.executable, "-W", "error", "shown.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert_none(done.stderr.splitlines(), "the program fails")
    assert done.stdout, "the program prints nothing"


def tests(block: Block, reader: Reader) -> None:
    """In a project with the workloads that it names, all its tests pass."""
    for path in re.findall(r'"(suites/[\w/]+\.jsonl)"', block.text):
        reader.workload(path)
    head = "" if "import pytest" in block.text else "import pytest\n"
    reader.project.file("test_shown.py", head + block.text)
    result = reader.project.run("test_shown.py")
    assert (result.exit_code, {*result.outcomes.values()}) == (0, {"passed"}), result.text
