from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_specdec import baseline_store
from pytest_specdec.baseline_store import BaselineStore
from pytest_specdec.baseline_update import (
    DiffRow,
    UpdateMode,
    diff_rows,
    merged,
    refusals,
    stored_workload,
    unused,
)
from pytest_specdec.counters import DraftCounters
from pytest_specdec.errors import StoredBaselineError
from pytest_specdec.measurement import PromptMeasurement
from pytest_specdec.stored_baseline import (
    Provenance,
    StoredAcceptance,
    StoredBaseline,
    StoredLoad,
    StoredSpeedup,
    StoredWorkload,
    rounded,
)
from pytest_specdec.trail import trail_of
from pytest_specdec.verdict import Verdict, VerdictKind
from tests.measured import PROVENANCE, counters, measurement, prompt, speedup, stored

BASELINE = StoredBaseline(
    hardware_key="cpu-x",
    hardware={"model": "X 9", "num_cores": 2, "is_virtual": True, "memory_gib": 7.5},
    profile="ngram",
    workloads={
        "sql": stored(speedup=2.0, prompts=(prompt("a", drafts=counters()), prompt("b"))),
        "story": stored(),
    },
)


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path / "baselines")


# The file.


def test_no_file_is_no_stored_baseline(store: BaselineStore) -> None:
    assert store.load("cpu-x", "ngram") is None


def test_what_is_saved_is_loaded(store: BaselineStore) -> None:
    path = store.save(BASELINE)
    assert path == store.folder / "cpu-x" / "ngram.json"
    assert store.load("cpu-x", "ngram") == BASELINE


def test_the_text_of_a_file(store: BaselineStore) -> None:
    third = stored(rate=1 / 3)
    path = store.save(replace(BASELINE, workloads={"z": third, "a": third}))
    text = path.read_text(encoding="utf-8")
    data = json.loads(text)
    assert text == json.dumps(data, indent=2, sort_keys=True) + "\n"
    assert data["schema_version"] == 2
    assert data["workloads"]["a"]["acceptance"]["rate"] == 0.333333
    assert list(data["workloads"]) == ["a", "z"]
    assert [each.name for each in path.parent.iterdir()] == ["ngram.json"]


counts = st.integers(0, 10**6)
names = st.text(min_size=1, max_size=8)
positive = st.floats(0.001, 1e6)
drafts_built = st.builds(
    DraftCounters,
    num_drafts=counts,
    num_draft_tokens=counts,
    num_accepted_tokens=counts,
    num_accepted_tokens_per_pos=st.lists(counts, max_size=5).map(tuple),
)
prompts_built = st.builds(
    PromptMeasurement,
    id=names,
    num_output_tokens=counts,
    num_steps=counts,
    token_digest=st.text("0123456789abcdef", min_size=16, max_size=16),
    trail=st.builds(trail_of, st.lists(counts, max_size=20), st.lists(counts, max_size=9)),
    drafts=st.none() | drafts_built,
)
speedups_built = st.builds(
    StoredSpeedup,
    value=positive,
    estimator=names,
    loads=st.lists(
        st.builds(
            StoredLoad,
            log_ratios=st.lists(st.floats(-9, 9), min_size=1, max_size=4).map(tuple),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    baseline_tokens_per_step=positive,
    speculative_tokens_per_step=positive,
    baseline_step_ms=positive,
    speculative_step_ms=positive,
)
workloads_built = st.builds(
    StoredWorkload,
    digest=names,
    concurrency=st.integers(1, 512),
    acceptance=st.builds(
        StoredAcceptance,
        rate=st.floats(0, 1),
        mean_acceptance_length=st.floats(1, 20),
        drafts_per_output_token=st.floats(0, 2),
        tokens_per_step=positive,
        estimator=names,
        drafts_source=st.sampled_from(["request", "engine"]),
        prompts=st.lists(
            prompts_built, min_size=1, max_size=3, unique_by=lambda prompt: prompt.id
        ).map(lambda prompts: tuple(sorted(prompts, key=lambda prompt: prompt.id))),
    ),
    speedup=st.none() | speedups_built,
    provenance=st.builds(
        Provenance,
        versions=st.fixed_dictionaries(
            dict.fromkeys(("vllm", "torch", "python", "driver"), st.none() | names)
        ),
        commit=st.none() | names,
        date=st.dates().map(str),
        num_loads=st.integers(1, 9),
        num_passes=st.integers(1, 99),
        settings_digest=names,
    ),
)


@settings(deadline=None)
@given(workloads=st.dictionaries(names, workloads_built, max_size=2))
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, workloads: dict[str, StoredWorkload]
) -> None:
    """All that is saved is read, floats to six digits; and saving again changes no byte."""
    store = BaselineStore(tmp_path_factory.getbasetemp() / "round-trip")
    baseline = replace(BASELINE, workloads=workloads)
    first = store.save(baseline).read_bytes()
    loaded = store.load("cpu-x", "ngram")
    assert loaded is not None
    assert _all_rounded(loaded.to_json()) == _all_rounded(baseline.to_json())
    assert store.save(loaded).read_bytes() == first


def _all_rounded(value: Any) -> Any:
    if isinstance(value, float):
        return rounded(value)
    if isinstance(value, dict):
        return {key: _all_rounded(each) for key, each in value.items()}
    return [_all_rounded(each) for each in value] if isinstance(value, list | tuple) else value


Change = Callable[[Any], Any]


def _set(*keys: str, to: Any) -> Change:
    def change(data: Any) -> Any:
        place = data
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to
        return data

    return change


def _without(*keys: str) -> Change:
    def change(data: Any) -> Any:
        place = data
        for key in keys[:-1]:
            place = place[key]
        del place[keys[-1]]
        return data

    return change


SQL = ("workloads", "sql")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_set("schema_version", to=1), "`/schema_version` is 1, but this pytest-specdec reads 2"),
        (_set("schema_version", to=0), "`/schema_version` is 0"),
        (_set("schema_version", to="1"), "`/schema_version` is '1'"),
        (_set("schema_version", to=True), "`/schema_version` is True"),
        (_without("schema_version"), "'schema_version' is a required property"),
        (_without("hardware"), "the root: 'hardware' is a required property"),
        (_without(*SQL, "digest"), "`/workloads/sql`: 'digest' is a required property"),
        (_without(*SQL, "speedup"), "`/workloads/sql`: 'speedup' is a required property"),
        (_without(*SQL, "provenance", "versions", "vllm"), "`/workloads/sql/provenance/versions`"),
        (_set(*SQL, "acceptance", "rate", to="half"), "`/workloads/sql/acceptance/rate`: 'half'"),
        (_set(*SQL, "acceptance", "rate", to=1.5), "`/workloads/sql/acceptance/rate`: 1.5"),
        (_set(*SQL, "acceptance", "rate", to=None), "`/workloads/sql/acceptance/rate`: None"),
        (
            _set(*SQL, "acceptance", "mean_acceptance_length", to=0.5),
            "`/workloads/sql/acceptance/mean_acceptance_length`: 0.5",
        ),
        (_set(*SQL, "acceptance", "drafts_source", to="me"), "drafts_source`: 'me'"),
        (_set(*SQL, "acceptance", "prompts", to={}), "`/workloads/sql/acceptance/prompts`"),
        (
            _set(*SQL, "acceptance", "prompts", "a", "drafts", "num_drafts", to=-1),
            "`/workloads/sql/acceptance/prompts/a/drafts/num_drafts`: -1",
        ),
        (_set(*SQL, "speedup", "value", to=0), "`/workloads/sql/speedup/value`: 0"),
        (_set(*SQL, "speedup", "loads", to=[]), "`/workloads/sql/speedup/loads`"),
        (_set(*SQL, "speedup", to=2.0), "`/workloads/sql/speedup`: 2.0 is not of type"),
        (_set(*SQL, "provenance", "date", to="yesterday"), "provenance/date`: 'yesterday'"),
        (_set(*SQL, "acceptance", "rat", to=0.5), "'rat' was unexpected"),
        (_set("workloads", to=[]), "`/workloads`: [] is not of type 'object'"),
        (lambda data: [data], "the root: "),
        (lambda _: None, "the root: None is not of type 'object'"),
    ],
)
def test_a_file_against_the_schema_is_refused_and_left(
    store: BaselineStore, change: Change, told: str
) -> None:
    path = store.save(BASELINE)
    data = json.loads(path.read_text(encoding="utf-8"))
    _refused(store, path, json.dumps(change(data)).encode(), told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", "line 1 is not JSON: "),
        (b'{\n  "a": 1,\n', "line 3 is not JSON: "),
        (b"{\n<<<<<<< ours\n", "line 2 is not JSON: "),
        (b'{"a": NaN}', "it is not JSON: `NaN`"),
        (b'{"a": 1, "a": 2}', "it is not JSON: key `a` stands twice"),
        (b"[" * 100_000, "nested too deeply"),
        (b"\xff\xfe", "codec can't decode"),
    ],
)
def test_a_file_that_is_not_json_is_refused_and_left(
    store: BaselineStore, text: bytes, told: str
) -> None:
    _refused(store, store.save(BASELINE), text, told)


def _refused(store: BaselineStore, path: Path, text: bytes, told: str) -> None:
    path.write_bytes(text)
    with pytest.raises(StoredBaselineError) as caught:
        store.load("cpu-x", "ngram")
    message, hint = str(caught.value).rsplit("\nhint: ", 1)
    assert message.startswith(f"stored baseline `{path}` cannot be read: ")
    assert told in message
    assert hint == (
        "restore it from version control, or delete it and record again with `--update-baselines`"
    )
    assert path.read_bytes() == text


def test_a_folder_in_the_file_s_place_is_refused(store: BaselineStore) -> None:
    store.path("cpu-x", "ngram").mkdir(parents=True)
    with pytest.raises(StoredBaselineError, match="cannot be read"):
        store.load("cpu-x", "ngram")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../up", "a\\b", "a\0b"])
def test_names_stay_inside_the_folder(store: BaselineStore, name: str) -> None:
    for names_given in ((name, "ngram"), ("cpu-x", name)):
        with pytest.raises(StoredBaselineError, match="no file can be named after"):
            store.path(*names_given)


@pytest.mark.parametrize("rate", [math.nan, math.inf, 1.5, -0.1])
def test_numbers_that_could_not_be_read_are_not_written(store: BaselineStore, rate: float) -> None:
    before = store.save(BASELINE).read_bytes()
    broken = replace(BASELINE, workloads={"sql": stored(rate=rate)})
    with pytest.raises(StoredBaselineError, match="is not written: "):
        store.save(broken)
    assert store.path("cpu-x", "ngram").read_bytes() == before


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_save_leaves_the_old_file_alone(
    store: BaselineStore,
    monkeypatch: pytest.MonkeyPatch,
    failing: str,
    error: BaseException,
) -> None:
    path = store.save(BASELINE)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise error

    if failing == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, "replace", fail)
    expected = StoredBaselineError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        store.save(replace(BASELINE, workloads={}))
    if isinstance(error, OSError):
        assert "cannot be written: No space left on device\nhint: " in str(caught.value)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_hardware_keys_of_a_profile(store: BaselineStore) -> None:
    assert store.hardware_keys("ngram") == ()
    for key in ("gpu-b", "cpu-x"):
        store.save(replace(BASELINE, hardware_key=key))
    store.save(replace(BASELINE, profile="draft", hardware_key="gpu-c"))
    assert store.hardware_keys("ngram") == ("cpu-x", "gpu-b")


def test_jsonschema_is_imported_on_use_only() -> None:
    code = (
        "import sys, pytest_specdec.baseline_store, pytest_specdec.baseline_update\n"
        "import pytest_specdec.family\n"
        "heavy = {'jsonschema', 'numpy', 'scipy', 'sqlglot', 'vllm', 'torch'}\n"
        "assert not heavy & sys.modules.keys()"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(baseline_store.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


# Hardware.


@pytest.mark.parametrize(
    ("key", "changes", "told"),
    [
        ("cpu-x", {}, ()),
        ("cpu-y", {}, ("hardware `hardware_key`: cpu-x stored, cpu-y here",)),
        ("cpu-x", {"num_cores": 4}, ("hardware `num_cores`: 2 stored, 4 here",)),
        ("cpu-x", {"new": "fact"}, ("hardware `new`: None stored, fact here",)),
    ],
)
def test_hardware_differences(key: str, changes: dict[str, Any], told: tuple[str, ...]) -> None:
    assert BASELINE.hardware_differences(key, {**BASELINE.hardware, **changes}) == told


# Updates.

OLD, NEW = stored(rate=0.4), stored(rate=0.6)


@pytest.mark.parametrize(
    ("mode", "rates"),
    [("all", {"a": 0.4, "b": 0.6, "c": 0.6}), ("new", {"a": 0.4, "b": 0.4, "c": 0.6})],
)
def test_merged_deletes_nothing(mode: UpdateMode, rates: dict[str, float]) -> None:
    old = replace(BASELINE, workloads={"a": OLD, "b": OLD})
    new = replace(BASELINE, workloads={"b": NEW, "c": NEW})
    workloads = merged(old, new, mode=mode).workloads
    assert {name: each.acceptance.rate for name, each in workloads.items()} == rates
    assert merged(None, new, mode=mode) == new


@pytest.mark.parametrize(
    "other",
    [
        replace(BASELINE, hardware_key="cpu-y"),
        replace(BASELINE, hardware={**BASELINE.hardware, "num_cores": 4}),
        replace(BASELINE, profile="draft"),
    ],
)
def test_merged_mixes_no_hardware(other: StoredBaseline) -> None:
    with pytest.raises(StoredBaselineError, match="hint: delete the file of `cpu-x`"):
        merged(BASELINE, other, mode="all")


def test_diff_rows_hold_what_changes() -> None:
    old = replace(BASELINE, workloads={"a": stored(speedup=2.0), "same": OLD, "gone": OLD})
    changed = stored(rate=0.25, tokens_per_step=2.0, speedup=2.0)
    new = replace(BASELINE, workloads={"a": changed, "same": OLD, "b": stored(speedup=1.5)})
    rows = [row for row in diff_rows(old, new) if row.workload != "gone"]
    assert rows == [
        DiffRow(workload="a", metric="acceptance rate", old=0.5, new=0.25),
        DiffRow(workload="a", metric="tokens per step", old=2.5, new=2.0),
        DiffRow(workload="b", metric="acceptance rate", old=None, new=0.5),
        DiffRow(workload="b", metric="mean acceptance length", old=None, new=3.0),
        DiffRow(workload="b", metric="drafts per output token", old=None, new=0.3125),
        DiffRow(workload="b", metric="tokens per step", old=None, new=2.5),
        DiffRow(workload="b", metric="speedup", old=None, new=1.5),
    ]
    gone = [row.new for row in diff_rows(old, new) if row.workload == "gone"]
    assert gone == [None] * 4


def test_diff_rows_of_a_first_recording_hold_all() -> None:
    assert len(diff_rows(None, BASELINE)) == 9


def test_a_speedup_that_is_no_longer_stored_is_a_row() -> None:
    old = replace(BASELINE, workloads={"a": stored(speedup=2.0)})
    new = replace(BASELINE, workloads={"a": stored()})
    assert diff_rows(old, new) == (DiffRow(workload="a", metric="speedup", old=2.0, new=None),)


def test_unused() -> None:
    assert unused(BASELINE, ["story", "not stored"]) == ("sql",)
    assert unused(BASELINE, ["story", "sql"]) == ()


def test_what_is_stored_of_a_measurement() -> None:
    prompts = (prompt("b"), prompt("a", drafts=counters()))
    taken = measurement(prompts=prompts, speedup=speedup(2.0, 2.0, baseline_step_ms=8.0))
    workload = stored_workload(taken, PROVENANCE)
    assert (workload.digest, workload.concurrency, workload.provenance) == ("d1", 1, PROVENANCE)
    acceptance = workload.acceptance
    assert (acceptance.rate, acceptance.mean_acceptance_length) == (0.5, 3.0)
    assert (acceptance.drafts_per_output_token, acceptance.tokens_per_step) == (0.3125, 2.5)
    assert acceptance.prompts == prompts[::-1]
    assert workload.speedup is not None
    assert workload.speedup.value == pytest.approx(2.0)
    assert workload.speedup.loads == (StoredLoad(log_ratios=(math.log(2), math.log(2))),)
    assert (workload.speedup.baseline_step_ms, workload.speedup.speculative_step_ms) == (8.0, 10.0)


@pytest.mark.parametrize("values", [None, (2.0,)])
def test_no_speedup_is_stored_without_scatter(values: tuple[float, ...] | None) -> None:
    taken = measurement(speedup=None if values is None else speedup(*values))
    assert stored_workload(taken, PROVENANCE).speedup is None


@pytest.mark.parametrize("drafts", [None, DraftCounters()])
def test_nothing_is_stored_of_nothing(drafts: DraftCounters | None) -> None:
    with pytest.raises(StoredBaselineError, match="`sql` has no acceptance to store"):
        stored_workload(measurement(drafts=drafts), PROVENANCE)


def _verdict(kind: VerdictKind, metric: str = "speedup") -> Verdict:
    return Verdict(kind=kind, metric=metric, workload="sql")


def _speedup(*, low: float, high: float) -> Verdict:
    return replace(_verdict("no stored baseline"), now=2.0, low=low, high=high)


@pytest.mark.parametrize(
    ("given_facts", "told"),
    [
        ({}, ()),
        ({"verdicts": [_verdict("passed"), _verdict("failed", "acceptance rate")]}, ()),
        ({"verdicts": [_verdict("no stored baseline"), _verdict("incomparable")]}, ()),
        ({"verdicts": [_verdict("inconclusive")]}, ("speedup is inconclusive",)),
        ({"verdicts": [_verdict("unmeasured")]}, ("speedup is unmeasured",)),
        (
            {"verdicts": [_verdict("failed", "draft counters")]},
            ("the draft counters contradict themselves",),
        ),
        ({"verdicts": [_speedup(low=1.8, high=2.2)]}, ()),
        ({"verdicts": [_speedup(low=1.7, high=math.inf)]}, ()),
        (
            {"verdicts": [_speedup(low=1.7, high=2.4)]},
            (
                "speedup is unstable: 2, but as low as 1.7 within its interval, further than the "
                "tolerance of 10%; raise `num_blocks` of the profile",
            ),
        ),
        ({"findings": ["a", "b"]}, ("answers have defects (2), the first: a",)),
        ({"is_ci": True, "is_update_in_ci_allowed": True}, ()),
        ({"is_update_in_ci_allowed": True}, ()),
        (
            {"is_ci": True, "findings": ["a"]},
            (
                "this is a CI environment and `--update-baselines-in-ci` is not given",
                "answers have defects (1), the first: a",
            ),
        ),
    ],
)
def test_refusals(given_facts: dict[str, Any], told: tuple[str, ...]) -> None:
    facts = {
        "findings": [],
        "verdicts": [],
        "is_ci": False,
        "is_update_in_ci_allowed": False,
        "speedup_drop": 0.1,
    }
    assert refusals(**{**facts, **given_facts}) == told
