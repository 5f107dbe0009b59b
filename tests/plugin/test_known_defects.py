"""Known defects: seen, told and not failing where they are known; missed where they are gone."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.fake_engine.project import Project, Result, metrics

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
VERSIONS = ">=0.27.1,<=0.32.0"
REASON = "the sampler reads memory that nobody wrote"
TOLD = f"known defect of vLLM {VERSIONS}: {REASON}"
COUNTS = "code.jsonl::fast::counts"
MISCOUNTING: dict[str, Any] = {"speculative": {"extra_usage": 1}}
DIVERGING: dict[str, Any] = {"speculative": {"diverge": {"prompt": "Say", "at": 3}}}


def defect(check: str = "counts", workload: str = "code", **more: Any) -> dict[str, Any]:
    return {
        "check": check,
        "workload": workload,
        "versions": VERSIONS,
        "reason": REASON,
        **more,
    }


def known(project: Project, *defects: dict[str, Any]) -> Project:
    """The profile names these defects."""
    project.profile()
    path = project.folder / "specdec.toml"
    tables = (
        "\n".join(f"{key} = {value!r}" for key, value in {**each}.items()) for each in defects
    )
    added = "".join(f"\n[[profiles.fast.known_defects]]\n{table}\n" for table in tables)
    path.write_text(path.read_text() + added)
    return project


@pytest.fixture
def code(project: Project) -> Project:
    """A workload of which only the answers are checked."""
    return project.workload("code", EXACT, gated=[])


def unexpected(check: str, version: str = "0.32.0") -> list[str]:
    return [
        f"unexpected pass: `{check}` of `code` finds nothing on vLLM {version}",
        TOLD,
        "hint: if it is mended there, end the entry's `versions` before this one in "
        "`known_defects` of the profile, or delete the entry",
    ]


def seen(check: str) -> dict[str, Any]:
    """What `report.json` tells of one that showed itself."""
    return {"check": check, "about": None, "versions": VERSIONS, "reason": REASON}


def not_seen(result: Result) -> list[str]:
    """The checks whose defect did not show itself, as `report.json` has them."""
    (workload,) = result.report["profiles"][0]["workloads"]
    assert workload["verdict"] == ("failed" if workload["unexpected_passes"] else "known defect")
    return [each["check"] for each in workload["unexpected_passes"]]


def told(result: Result) -> list[str]:
    return [line for line in result.section if "known defect " in line]


def test_a_finding_that_is_known_fails_nothing_and_is_shown_everywhere(code: Project) -> None:
    known(code, defect()).fake(**MISCOUNTING)
    result = code.run("suites", "-rx", "--junitxml=junit.xml")
    assert (result.exit_code, result.not_passed) == (0, {COUNTS: "skipped"})
    assert "1 xfailed" in result.text
    reason = f"XFAIL suites/{COUNTS} - {TOLD}"
    assert any(line.startswith(reason) for line in result.lines), result.text
    assert told(result) == [f"code: counts: {TOLD} (seen: 1)"]
    (workload,) = result.report["profiles"][0]["workloads"]
    assert workload["verdict"] == "known defect"
    (finding,) = workload["findings"]
    assert (finding["check"], finding["about"], finding["kind"], finding["known_defect"]) == (
        "counts",
        None,
        "miscounted",
        TOLD,
    )
    assert workload["known_defects"] == [seen("counts")]
    (suite,) = ET.parse(code.folder / "junit.xml").getroot()
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("0", "0", "1")
    (skipped,) = suite.iter("skipped")
    assert skipped.get("type") == "pytest.xfail"
    first, second, *_ = skipped.get("message", "").splitlines()
    assert (first, second) == (TOLD, "miscounted")


def test_a_defect_that_does_not_show_itself_any_more_fails(code: Project) -> None:
    result = known(code, defect()).run("suites", "--junitxml=junit.xml")
    assert (result.exit_code, result.not_passed) == (1, {COUNTS: "failed"})
    assert result.message("counts").splitlines() == unexpected("counts")
    assert told(result) == [f"code: counts: unexpected pass: {TOLD}"]
    assert not_seen(result) == ["counts"]
    (suite,) = ET.parse(code.folder / "junit.xml").getroot()
    assert (suite.get("failures"), suite.get("skipped")) == ("1", "0")


@pytest.mark.parametrize(
    ("version", "is_known"),
    [
        ("0.27.0", False),
        ("0.27.1", True),
        ("0.32.0", True),
        ("0.32.0rc1", True),
        ("0.32.1", False),
        ("0.33.0.dev5+g1a2b3c", False),
        ("dev", False),
    ],
)
def test_other_versions_have_it_not(code: Project, version: str, *, is_known: bool) -> None:
    known(code, defect()).fake(**MISCOUNTING, versions={"vllm": version})
    result = code.run("suites")
    assert result.not_passed == {COUNTS: "skipped" if is_known else "failed"}
    if not is_known:
        assert result.message("counts").startswith("miscounted\n")
    code.fake(versions={"vllm": version})
    assert code.run("suites").not_passed == ({COUNTS: "failed"} if is_known else {})


def test_an_unexpected_pass_names_the_version_here(code: Project) -> None:
    known(code, defect()).fake(versions={"vllm": "0.28.0"})
    assert code.run("suites").message("counts").splitlines() == unexpected("counts", "0.28.0")


def test_another_finding_is_not_excused(code: Project) -> None:
    known(code, defect()).fake(
        speculative={"extra_usage": 1, "diverge": {"prompt": "abc", "at": 3}}
    )
    result = code.run("suites")
    item = "code.jsonl::fast::identical[one]"
    assert result.not_passed == {COUNTS: "skipped", item: "failed"}
    assert result.exit_code == 1
    assert result.report["profiles"][0]["workloads"][0]["verdict"] == "failed"


def test_another_workload_s_finding_is_not_excused(code: Project) -> None:
    code.workload("story", EXACT, gated=[])
    result = known(code, defect()).fake(**MISCOUNTING).run("suites")
    assert result.not_passed == {COUNTS: "skipped", "story.jsonl::fast::counts": "failed"}


IDENTICAL = "code.jsonl::fast::identical[{}]"


def test_one_prompt_of_several_may_show_it(code: Project) -> None:
    code.workload("code", "one", "two", "three", gated=[])
    how = {"speculative": {"diverge": {"prompt": "about two", "at": 3}}}
    result = known(code, defect("identical")).fake(**how).run("suites")
    assert result.not_passed == {IDENTICAL.format("two"): "skipped"}
    assert told(result) == [f"code: identical: {TOLD} (seen: 1)"]
    assert not_seen(result) == []
    # Where none does, each says so.
    result = code.fake().run("suites")
    assert result.not_passed == {
        IDENTICAL.format(name): "failed" for name in ("one", "two", "three")
    }
    assert result.message("identical[two]").splitlines() == unexpected("identical")
    assert told(result) == [f"code: identical: unexpected pass: {TOLD}"]
    assert not_seen(result) == ["identical"]


def test_about_narrows_it(code: Project) -> None:
    code.workload("code", "one", "two", "three", gated=[])
    known(code, defect("identical", about=["one", "two"])).fake(**DIVERGING)
    result = code.run("suites")
    assert result.not_passed == {
        IDENTICAL.format("one"): "skipped",
        IDENTICAL.format("two"): "skipped",
        IDENTICAL.format("three"): "failed",
    }
    assert told(result) == [f"code: identical: {TOLD} (seen: 2)"]
    assert code.fake().run("suites").not_passed == {
        IDENTICAL.format("one"): "failed",
        IDENTICAL.format("two"): "failed",
    }


LIKELIEST: dict[str, Any] = {"drawn": "likeliest"}
DISTRIBUTION = "code.jsonl::fast::distribution"


def test_kind_narrows_it(project: Project) -> None:
    project.workload("code", {"id": "own", "temperature": 1, "max_tokens": 240}, gated=[])
    known(project, defect("distribution", kind=["distribution"])).fake(speculative=LIKELIEST)
    result = project.run("suites")
    assert (result.exit_code, result.not_passed) == (0, {DISTRIBUTION: "skipped"})
    result = project.fake(baseline=LIKELIEST).run("suites")
    assert (result.exit_code, result.not_passed) == (1, {DISTRIBUTION: "failed"})
    assert result.message("distribution").startswith("uncalibrated\n")
    assert told(result) == []
    (workload,) = result.report["profiles"][0]["workloads"]
    assert (workload["verdict"], workload["known_defects"]) == ("failed", [])
    result = project.fake().run("suites")
    assert result.message("distribution").startswith(
        "unexpected pass: `distribution` of `code` finds no `distribution` on vLLM 0.32.0\n"
    )


def test_a_finding_of_another_kind_keeps_numbers_from_being_stored(project: Project) -> None:
    known(project, defect("exercised", kind=["nothing rejected"])).workload("code", EXACT)
    project.fake(accepted=4)
    assert project.run("suites", "--update-baselines").exit_code == 0
    assert set(project.stored()["workloads"]) == {"code"}
    known(project, defect("exercised", kind=["too short"]))
    refused = project.run("suites", "--update-baselines")
    assert any("the first: nothing rejected" in line for line in refused.section)


def test_a_circumstance_can_have_one(code: Project) -> None:
    code.workload("code", EXACT, gated=[], again=["after-sleep", "after-aborts"])
    known(code, defect("again", about=["after-sleep"]))
    code.fake(speculative={"diverge": {"prompt": "abc", "at": 3, "circumstances": ["after-sleep"]}})
    item = "code.jsonl::fast::again[after-sleep]"
    assert code.run("suites").not_passed == {item: "skipped"}
    assert code.fake().run("suites").not_passed == {item: "failed"}
    # What cannot be tried is neither seen nor missed.
    result = code.fake(unsupported=["after-sleep"]).run("suites")
    assert (result.exit_code, result.not_passed) == (0, {item: "skipped"})
    assert told(result) == []
    assert "cannot be brought there" in result.message("again[after-sleep]")


@pytest.fixture
def recorded(project: Project) -> Project:
    """A workload with stored baselines, of which all is gated."""
    return project.workload("code", EXACT).record()


def test_a_metric_can_have_one(recorded: Project) -> None:
    known(recorded, defect("acceptance")).fake(accepted=2, speculative={"step_ms": 5.0})
    item = "code.jsonl::fast::acceptance"
    result = recorded.run("suites", "-rx")
    assert (result.exit_code, result.not_passed) == (0, {item: "skipped"})
    assert any(line.startswith(f"XFAIL suites/{item} - {TOLD}") for line in result.lines)
    assert told(result) == [f"code: acceptance: {TOLD} (seen: 1)"]
    (workload,) = result.report["profiles"][0]["workloads"]
    assert workload["verdict"] == "passed"
    assert workload["verdicts"]["acceptance"]["kind"] == "failed"
    assert workload["known_defects"] == [seen("acceptance")]
    missed = recorded.fake().run("suites")
    assert missed.not_passed == {item: "failed"}
    assert missed.message("acceptance").splitlines() == unexpected("acceptance")
    assert told(missed) == [f"code: acceptance: unexpected pass: {TOLD}"]
    assert not_seen(missed) == ["acceptance"]


def test_a_metric_s_kinds_are_its_verdicts(recorded: Project) -> None:
    known(recorded, defect("acceptance", kind=["failed"]))
    recorded.fake(accepted=2, speculative={"step_ms": 5.0})
    item = "code.jsonl::fast::acceptance"
    assert recorded.run("suites").not_passed == {item: "skipped"}
    recorded.workload("code", EXACT, "another")  # nothing is stored for these prompts
    result = recorded.run("suites", "--specdec-profile=fast")
    assert result.outcomes[item] == "failed"
    assert result.message("acceptance").startswith("incomparable: ")


def test_a_metric_without_stored_numbers_neither_shows_nor_misses_one(project: Project) -> None:
    known(project, defect("acceptance")).workload("code", EXACT)
    result = project.run("suites")
    assert result.not_passed == metrics("code", "skipped")
    assert told(result) == []


def test_a_finding_that_is_known_keeps_no_numbers_from_being_stored(project: Project) -> None:
    project.workload("code", EXACT).fake(**MISCOUNTING)
    refused = project.run("suites", "--update-baselines")
    assert refused.exit_code == 1
    assert not (project.folder / "baselines").exists()
    result = known(project, defect()).run("suites", "--update-baselines")
    assert (result.exit_code, result.not_passed) == (0, {COUNTS: "skipped"})
    assert project.stored()["workloads"]["code"]["acceptance"]["rate"] == 0.75
    assert told(result) == [f"code: counts: {TOLD} (seen: 1)"]


def test_an_unexpected_pass_keeps_none_either(project: Project) -> None:
    known(project, defect()).workload("code", EXACT)
    result = project.run("suites", "--update-baselines")
    assert (result.exit_code, result.not_passed) == (1, {COUNTS: "failed"})
    assert set(project.stored()["workloads"]) == {"code"}
    assert not_seen(result) == ["counts"]


@pytest.mark.parametrize(
    "entry",
    [
        defect(workload="cod"),
        # There are such checks, and this workload has them not.
        defect("distribution"),
        defect("acceptance"),
        defect("identical", about=["two"]),
        defect("again", about=["after-sleep"]),
    ],
)
def test_an_entry_that_no_test_is_about_is_told(code: Project, entry: dict[str, Any]) -> None:
    result = known(code, entry).run("suites")
    assert (result.exit_code, result.not_passed) == (0, {})
    assert told(result) == [
        f"known defect that no test is about: `{entry['check']}` of `{entry['workload']}`"
    ]
    (untested,) = result.report["profiles"][0]["untested"]
    assert untested == {"about": [], "kind": [], **entry}


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        pytest.param(
            [defect("distrbution")],
            [
                "`profiles.fast.known_defects.0.check` is no check: 'distrbution'",
                "hint: did you mean `distribution`?",
            ],
            id="no such check",
        ),
        pytest.param(
            [defect(), defect("acceptanc")],
            [
                "`profiles.fast.known_defects.1.check` is no check: 'acceptanc'",
                "hint: did you mean `acceptance`?",
            ],
            id="no such metric",
        ),
        pytest.param(
            [defect(), defect("distribution", kind=["distribution", "uncalibrate"])],
            [
                "`profiles.fast.known_defects.1.kind` is no kind of `distribution`: 'uncalibrate'",
                "hint: did you mean `uncalibrated`?",
            ],
            id="no such kind",
        ),
        pytest.param(
            [defect("acceptance", kind=["passed"])],
            [
                "`profiles.fast.known_defects.0.kind` is no kind of `acceptance`: 'passed'",
                "hint: known here: `failed`, `incomparable`, `inconclusive`, `no stored baseline`, "
                "`unmeasured`",
            ],
            id="no kind of a metric",
        ),
        pytest.param(
            [defect(kind="miscounted")],
            ["`profiles.fast.known_defects.0.kind` is not a list: 'miscounted'"],
            id="no list of kinds",
        ),
        pytest.param(
            [defect(about=["one"]), defect(about=["two"])],
            [
                "`profiles.fast.known_defects.1` is a second entry for `counts` of `code`",
                "hint: name all of its prompts in `about` of one entry",
            ],
            id="two of one check",
        ),
        pytest.param(
            [defect(versions="up to 0.32")],
            [
                "`profiles.fast.known_defects.0.versions` names no versions: 'up to 0.32'",
                'hint: write bounds as pip does, such as ">=0.27.1,<=0.32.0"',
            ],
            id="no versions",
        ),
        pytest.param(
            [{key: value for key, value in defect().items() if key != "reason"}],
            [
                "`profiles.fast.known_defects.0` lacks `reason`: what is broken, and where that is "
                "known from",
            ],
            id="no reason",
        ),
        pytest.param(
            [defect(version="1")],
            [
                "`profiles.fast.known_defects.0.version` is not a known key",
                "hint: did you mean `versions`?",
            ],
            id="an unknown key",
        ),
    ],
)
@pytest.mark.parametrize("arguments", [(), ("--specdec-profile=fast",)])
def test_a_wrong_entry_is_refused(
    code: Project, entries: list[dict[str, Any]], told: list[str], arguments: tuple[str, ...]
) -> None:
    result = known(code, *entries).run("suites", *arguments)
    assert result.exit_code == 4
    assert result.errors[: len(told)] == [f"ERROR: `specdec.toml`: {told[0]}", *told[1:]]
    assert result.commands == []
