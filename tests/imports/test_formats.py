"""A file's format is told by its content: one, several, none; and each name may be given."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_specdec.errors import ImportFileError
from pytest_specdec.imports.formats import FORMATS, format_of, import_file
from tests.imports.reading import document, of_json, refused
from tests.imports.test_bench_text import END, HEAD, PLAIN
from tests.imports.test_prometheus import EARLY, LATE
from tests.imports.test_server_log import NEWEST


def refused_file(path: Path, content: str = "", **options: object) -> str:
    path.write_text(content)
    with pytest.raises(ImportFileError) as caught:
        import_file(path, **options)  # type: ignore[arg-type]
    return str(caught.value)


def test_none_fits() -> None:
    message = refused(document("a letter to Ada\n"))
    assert message.startswith("`run.txt` holds no measurement in a known format\nhint: known here:")
    assert all(f"`{name}`" in message for name in FORMATS)
    assert refused(of_json({"a": 1})) == message.replace("run.txt", "run.json")


def test_several_fit() -> None:
    message = refused(document(NEWEST + HEAD + PLAIN + END))
    assert message == (
        "`run.txt` may be `vllm-bench-text` or `vllm-log`\nhint: name one of them with `--format`"
    )


def test_json_that_is_cut_off() -> None:
    message = refused(document('{"duration": 10.5, "comp', name="bench.json"))
    assert message.startswith("`bench.json` is no JSON, or is cut off: Unterminated string")


def test_a_named_format(tmp_path: Path) -> None:
    path = tmp_path / "both.txt"
    path.write_text(NEWEST + HEAD + PLAIN + END)
    (log,) = import_file(path, format_name="vllm-log")
    (bench,) = import_file(path, format_name="vllm-bench-text")
    assert (log.num_drafts, bench.num_requests) == (100, 1319)


def test_a_named_format_that_is_not_that(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    message = refused_file(path, NEWEST, format_name="prometheus")
    assert message.startswith(f"`{path}` is not `prometheus`\nhint: ")
    message = refused_file(path, NEWEST, format_name="vlm-log")
    assert message == "`vlm-log` is no format\nhint: did you mean `vllm-log`?"
    message = refused_file(path, '{"a', format_name="aiperf")
    assert message.startswith(f"`{path}` is no JSON, or is cut off: ")


def test_two_scrapes(tmp_path: Path) -> None:
    before, after = tmp_path / "before.prom", tmp_path / "after.prom"
    before.write_text(EARLY)
    after.write_text(LATE)
    (run,) = import_file(after, before=before)
    assert run.num_drafts == 100
    message = refused_file(tmp_path / "run.log", NEWEST, before=before)
    assert "is `vllm-log`, from which nothing is to be taken off" in message
    assert message.endswith("hint: `--before` is for `prometheus`")


def test_every_format_is_told_by_content() -> None:
    assert format_of(document(EARLY)).name == "prometheus"
    assert format_of(document(NEWEST)).name == "vllm-log"
    assert list(FORMATS) == [each.name for each in FORMATS.values()]
