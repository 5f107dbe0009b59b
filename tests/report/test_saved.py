"""A saved `report.json`, read back, and everything else refused with the way out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.errors import ReportError
from pytest_specdec.report.json_file import SCHEMA_VERSION, report_json
from pytest_specdec.report.saved import read_report, report_defect
from tests.report.hostile import hostile_data


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(report_json(hostile_data()))
    assert read_report(path) == hostile_data()


def edit(change: Callable[[Any], None]) -> str:
    data = hostile_data()
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not JSON: expecting value at character 0"),
        ("[]", "the root: [] is not of type 'object'"),
        ("{}", "the root: 'schema_version' is a required property"),
        (edit(lambda d: d.update(schema_version=1)), "`/schema_version` is 1, but"),
        (edit(lambda d: d.update(schema_version=True)), "`/schema_version` is True, but"),
        (edit(lambda d: d.update(more=1)), "the root: Additional properties are not allowed"),
        (
            edit(lambda d: d["profiles"][0]["workloads"][0]["figures"].update(more=1)),
            "`/profiles/0/workloads/0/figures`: Additional properties are not allowed",
        ),
        (
            edit(lambda d: d["profiles"][0]["workloads"][0]["findings"][0].pop("severity")),
            "`/profiles/0/workloads/0/findings/0`: 'severity' is a required property",
        ),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(ReportError) as caught:
        read_report(path)
    message = str(caught.value)
    assert message.startswith(f"`{path}` cannot be read as a report: {told}")
    assert "\nhint: name the report.json of a session of this pytest-specdec" in message


@pytest.mark.parametrize("content", [None, b"\xff"])
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "report.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ReportError, match="No such file" if content is None else "not UTF-8, at"):
        read_report(path)


def objects(schema: Any) -> list[Any]:
    """Every schema of an object with named properties."""
    inner = schema.values() if isinstance(schema, dict) else schema
    found = [each for part in inner if isinstance(part, dict | list) for each in objects(part)]
    return [*found, *([schema] if isinstance(schema, dict) and "required" in schema else [])]


def test_the_schema_refuses_unknown_keys_everywhere() -> None:
    path = Path(__file__).parents[2] / "pytest_specdec/report/report.schema.json"
    schema = json.loads(path.read_text())
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["properties"]["schema_version"] == {"const": SCHEMA_VERSION}
    found = objects(schema)
    assert len(found) > 30
    for each in found:
        assert each["additionalProperties"] is False
        assert each["required"] == [*each["properties"]]
    assert report_defect(hostile_data()) is None
