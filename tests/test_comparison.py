"""Two recordings beside each other: what is told of them, and what they are refused for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.cli import main
from pytest_specdec.engines.asked import Answers
from pytest_specdec.engines.protocol import EngineFacts
from pytest_specdec.generation import RunPair
from pytest_specdec.hardware import Hardware
from pytest_specdec.recording import Header, Recording
from pytest_specdec.recording_file import read_recording, write_recording
from pytest_specdec.workload import Workload
from tests.said import completion, drafts, generation, pair, prompt, walk, workload

FACTS: Mapping[str, Any] = {"cores": 2, "instruction_set": "avx2"}
CPU = Hardware(device="cpu", name="A CPU", count=2, facts=FACTS)
PROFILE = {"device": "cpu", "model": "org/m", "engine_args": {}, "num_blocks": 1, "num_loads": 1}
ASKED = workload(prompt("one"), prompt("two"), prompt("drawn", temperature=1))
ONE_LOAD = "speedups of one load each: what varies between engine starts is in no interval"


def header(vllm: str = "0.31.0", **facts: Any) -> Header:
    versions = {"vllm": vllm, "torch": "2.13.0"}
    config = facts.pop("config", {"max_num_seqs": 16})
    engine = EngineFacts(versions=versions, load_s=1.5, config=config)
    return Header(
        **{
            "pytest_specdec": "0.1.0",
            "recorded_at": "2026-01-02T03:04:05+00:00",
            "commit": None,
            "profile": PROFILE,
            "hardware": CPU,
            "versions": versions,
            "engines": {"baseline": engine, "speculative": engine},
            "num_starts": {"baseline": 1, "speculative": 1},
            **facts,
        }
    )


def runs(
    *,
    two: tuple[int, ...] = (5, 6),
    plain: tuple[int, ...] = (5, 6),
    wall_s: Sequence[float] = (1.0, 1.0),
    num_loads: int = 1,
) -> RunPair:
    """Passes of each engine; `two` is the speculative answer to the second prompt, `plain` the
    baseline engine's, and `wall_s` has the time of each speculative pass."""
    baseline = [generation("one"), generation("two", plain), generation("drawn", (1, 2))]
    counted = {"drafts": drafts(2, 1), "step_tokens": (2,)}
    speculative = [
        generation(name, ids, **counted)
        for name, ids in (("one", (5, 6)), ("two", two), ("drawn", (3, 4)))
    ]
    said = pair(
        [walk(*baseline, wall_s=2.0) for _ in wall_s],
        [walk(*speculative, drafts=drafts(2, 1), wall_s=each) for each in wall_s],
    )
    return replace(said, num_loads=num_loads)


def write(
    folder: Path, of: Header, said: RunPair, *, asked: Workload = ASKED, profile: str = "fast"
) -> None:
    recording = Recording(header=of, workload=asked, runs=said, answers=Answers())
    write_recording(folder / profile, recording)


def compared(tmp_path: Path) -> int:
    """The exit status of comparing the folders `a` and `b`."""
    return main(["compare", str(tmp_path / "a"), str(tmp_path / "b")])


def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What is told instead of a comparison."""
    assert compared(tmp_path) == 2
    said = capsys.readouterr()
    assert said.out == ""
    return said.err.removeprefix("pytest-specdec: error: ")


def cells(line: str) -> list[str]:
    """A line of the table, column by column."""
    return re.split(" {2,}", line)


def test_nothing_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, header(), runs())
    assert compared(tmp_path) == 0
    *told, head, row, change, note = capsys.readouterr().out.splitlines()
    assert told == [
        "profile fast",
        "A: 2026-01-02; vLLM 0.31.0, torch 2.13.0; A CPU, 2 cores, avx2",
        "B: 2026-01-02; vLLM 0.31.0, torch 2.13.0; A CPU, 2 cores, avx2",
    ]
    assert cells(head) == [
        "workload",
        "greedy answers that differ: baseline / speculative",
        "acceptance rate A / B",
        "mean acceptance length A / B",
        "speedup A / B",
    ]
    speedups = "2.00 (2.00 to 2.00) / 2.00 (2.00 to 2.00)"
    assert cells(row) == ["code", "0 of 2 / 0 of 2", "0.375 / 0.375", "2.500 / 2.500", speedups]
    undecided = "whether it changed is undecided"
    assert change == f"code: speedup B / A: 1.000 (1.000 to 1.000): {undecided}"
    assert note == ONE_LOAD


def test_all_that_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "a", header(), runs())
    gpu = Hardware(device="cpu", name="Another", count=4, facts={**FACTS, "cores": 4})
    new = header(
        "0.32.0",
        hardware=gpu,
        profile={**PROFILE, "engine_args": {"dtype": "float32"}},
        config={"max_num_seqs": 16, "async": True},
    )
    write(tmp_path / "b", new, runs(two=(5, 7), plain=(8, 6), wall_s=(0.5, 0.5)))
    assert compared(tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    speedups = "2.00 (2.00 to 2.00) / 4.00 (4.00 to 4.00)"
    assert cells(lines[4]) == [
        "code",
        "1 of 2 / 1 of 2",
        "0.375 / 0.375",
        "2.500 / 2.500",
        speedups,
    ]
    assert lines[5:] == [
        "code: baseline answers differ: two at token 0",
        "code: speculative answers differ: two at token 1",
        "code: speedup B / A: 2.000 (2.000 to 2.000): it rose",
        ONE_LOAD,
        "vllm: 0.31.0 -> 0.32.0",
        "cores: 2 -> 4",
        "engine_args: {} -> {'dtype': 'float32'}",
        "baseline engine: async: - -> True",
        "speculative engine: async: - -> True",
        "the hardware differs: speedups say nothing of the versions",
    ]


@pytest.mark.parametrize(
    ("old", "new", "num_loads", "speedups", "change"),
    [
        pytest.param(
            (1.0, 1.1, 1.0, 1.1),
            (1.1, 1.0, 1.0, 1.2),
            1,
            "1.91 (1.75 to 2.08) / 1.87 (1.62 to 2.15)",
            "0.978 (0.857 to 1.117): whether it changed is undecided",
            id="undecided",
        ),
        pytest.param(
            (1.00, 1.04, 1.08, 1.02),
            (1.06, 1.10, 1.12, 1.14),
            1,
            "1.93 (1.83 to 2.04) / 1.81 (1.72 to 1.90)",
            "0.937 (0.886 to 0.990): it fell",
            id="decided, though the intervals overlap",
        ),
        pytest.param(
            (1.0, 1.0, 1.1, 1.1),
            (0.50, 0.50, 0.51, 0.51),
            2,
            "1.91 (1.04 to 3.49) / 3.96 (3.49 to 4.49)",
            "2.077 (1.243 to 3.472): it rose",
            id="two loads of either",
        ),
        pytest.param(
            (1.0,),
            (0.5,),
            1,
            "2.00 / 4.00",
            "2.000: too few passes to decide whether it changed",
            id="no scatter",
        ),
    ],
)
def test_a_speedup_has_its_interval_and_its_change_is_told_in_words(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    old: Sequence[float],
    new: Sequence[float],
    num_loads: int,
    speedups: str,
    change: str,
) -> None:
    write(tmp_path / "a", header(), runs(wall_s=old, num_loads=num_loads))
    write(tmp_path / "b", header(), runs(wall_s=new, num_loads=num_loads))
    compared(tmp_path)
    _, _, _, _, row, told, *notes = capsys.readouterr().out.splitlines()
    assert cells(row)[-1] == speedups
    assert told == f"code: speedup B / A: {change}"
    assert notes == ([ONE_LOAD] if num_loads == 1 else [])


def test_two_profiles_by_their_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    night = tmp_path / "night"
    for size in (3, 5):
        config = {"method": "ngram", "num_speculative_tokens": size}
        profile = {**PROFILE, "speculative_config": config}
        write(night, header(profile=profile), runs(), profile=f"ngram-{size}")
    write(night, header(), runs(), asked=replace(ASKED, name="new"), profile="ngram-5")
    assert main(["compare", str(night / "ngram-3"), str(night / "ngram-5")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "profiles ngram-3 (A) and ngram-5 (B)"
    assert cells(lines[4])[:2] == ["code", "0 of 2 / 0 of 2"]
    assert "new: not comparable: only in B" in lines
    assert lines[-1] == (
        "speculative_config: {'method': 'ngram', 'num_speculative_tokens': 3} -> "
        "{'method': 'ngram', 'num_speculative_tokens': 5}"
    )


def test_one_profile_of_two_sessions_by_its_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, header(), runs())
        write(tmp_path / name, header(), runs(), profile="slow")
    monkeypatch.chdir(tmp_path / "b/fast")
    assert main(["compare", "../../a/fast", "."]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("profile")]
    assert told == ["profile fast"]


def test_profiles_that_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(first: str, second: str) -> str:
        assert main(["compare", str(tmp_path / first), str(tmp_path / second)]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        return said.err.removeprefix("pytest-specdec: error: ").replace(f"{tmp_path}/", "")

    write(tmp_path / "a", header(), runs(), profile="one")
    write(tmp_path / "a", header(), runs(), profile="two", asked=replace(ASKED, name="other"))
    for named in (("a/one", "a"), ("a", "a/one")):
        assert refused(*named) == (
            "`a/one` is the folder of one profile, and `a` of a whole session\n"
            "hint: name a profile's folder in it: `a/one`, `a/two`\n"
        )
    assert refused("a/one", "a/two") == (
        "no workload is in both `a/one` and `a/two`\nhint: recorded in A: code; in B: other\n"
    )
    assert refused("a/one", "absent").startswith("no folder of recordings: absent\nhint: ")


def test_many_answers_that_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"p{number}" for number in range(10)]
    asked = workload(*map(prompt, names))
    for folder, token in (("a", 1), ("b", 2)):
        said = walk(*(generation(name, (token,)) for name in names))
        write(tmp_path / folder, header(), pair([said], [said]), asked=asked)
    compared(tmp_path)
    (line,) = [each for each in capsys.readouterr().out.splitlines() if "baseline answers" in each]
    assert line.endswith("p6 at token 0, p7 at token 0, and 2 more")


def test_the_further_answers_are_compared_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, token in (("a", 6), ("b", 7)):
        said = walk(generation(others=(completion((5, token)),)))
        write(tmp_path / folder, header(), pair([said], [said]), asked=workload(prompt(n=2)))
    compared(tmp_path)
    assert "code: baseline answers differ: one at token 1" in capsys.readouterr().out


def test_other_prompts_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "a", header(), runs())
    other = replace(ASKED, prompts=(prompt("one", max_tokens=8), *ASKED.prompts[1:]), concurrency=2)
    write(tmp_path / "b", header(), runs(two=(9, 9)), asked=other)
    compared(tmp_path)
    *_, row, note = capsys.readouterr().out.splitlines()  # nor is anything said of the speedup
    assert cells(row)[:2] == ["code", "- / -"]
    assert note == (
        "code: not comparable: `concurrency` was 1 and is 2; prompts were changed, added or taken "
        "out: one"
    )


def test_what_only_one_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, header(), runs())
    write(tmp_path / "a", header(), runs(), asked=replace(ASKED, name="old"))
    write(tmp_path / "b", header(), runs(), asked=replace(ASKED, name="new"))
    write(tmp_path / "a", header(), runs(), profile="before")
    compared(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert "old: not comparable: only in A" in lines
    assert "new: not comparable: only in B" in lines
    (row,) = [line for line in lines if line.startswith("old ")]
    assert "0.375 / -" in row
    assert lines[-1] == "profiles only in A: before"


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hint = "hint: record a session with `--specdec-record DIR`, and name that folder\n"
    assert refused(tmp_path, capsys) == f"no folder of recordings: {tmp_path / 'a'}\n{hint}"
    (tmp_path / "a").mkdir()
    (tmp_path / "a/file").touch()
    assert refused(tmp_path, capsys) == f"no recordings in: {tmp_path / 'a'}\n{hint}"
    write(tmp_path / "a", header(), runs(), profile="old")
    write(tmp_path / "b", header(), runs(), profile="new")
    assert refused(tmp_path, capsys) == (
        f"no profile is in both `{tmp_path / 'a'}` and `{tmp_path / 'b'}`\n"
        "hint: recorded in A: old; in B: new; two profiles are compared by their folders, as "
        f"`{tmp_path / 'a/old'} {tmp_path / 'b/new'}`\n"
    )
    write(tmp_path / "b", header(), runs(), profile="old")
    path = tmp_path / "b/old/code.jsonl.gz"
    path.write_bytes(path.read_bytes()[:99])
    told = refused(tmp_path, capsys)
    assert told.startswith(f"recording `{path}` cannot be read: it was cut short\nhint: record it")


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(tmp_path, header(config={"limit": float("inf")}), runs())
    read = read_recording(tmp_path / "fast/code.jsonl.gz")
    assert read.runs == runs()
    assert read.header == header(config={"limit": "Infinity"})
    assert read.workload.digest == ASKED.digest
    assert read.workload.prompts == tuple(replace(each, line=2) for each in ASKED.prompts)
    before = (tmp_path / "fast/code.jsonl.gz").read_bytes()
    write(tmp_path, read.header, read.runs)
    assert (tmp_path / "fast/code.jsonl.gz").read_bytes() == before
