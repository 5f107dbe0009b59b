"""What each verdict and finding does to its test, from the files to the exit code."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.fake_engine.project import Project, Result, metrics

# 12 tokens and the end: 13 steps without speculation, 4 with it, at 3 of 4 draft tokens accepted.
EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
UPDATE = "`pytest suites --update-baselines`"
NOISE = [1.0, 0.6, 1.6, 0.7, 1.5]


def raise_by_a_fifth(data: Any) -> None:
    acceptance = data["workloads"]["code"]["acceptance"]
    acceptance["rate"] = round(acceptance["rate"] * 1.2, 6)


@pytest.fixture
def recorded(project: Project) -> Project:
    """Two workloads with stored baselines."""
    return project.workload("code", EXACT).workload("story", "one", "two").record()


def test_as_stored_all_pass(recorded: Project) -> None:
    result = recorded.run("suites")
    assert (result.exit_code, result.counts) == (0, {"passed": 13})
    assert recorded.stored()["workloads"]["code"]["acceptance"]["rate"] == 0.75
    assert recorded.stored()["workloads"]["code"]["speedup"]["value"] == 3.25


def test_a_stored_rate_raised_by_a_fifth_fails_one_test(recorded: Project) -> None:
    result = recorded.edit_stored(raise_by_a_fifth).run("suites", "--junitxml=junit.xml")
    assert result.not_passed == {"code.jsonl::fast::acceptance": "failed"}
    assert result.exit_code == 1
    assert result.message("acceptance").splitlines() == [
        "failed: acceptance rate of `code`: 0.75 is below 0.882",
        "now: 0.75",
        "stored: 0.9",
        "floor: 0.882 (stored less 2%)",
        "drafts per output token: 0.230769 stored, 0.230769 now",
        "answers: all 1 token for token as stored, and so are the counts",
        "smallest fall below stored that fails here: 2%, always",
        f"hint: if this is meant, record it: {UPDATE}",
    ]
    (suite,) = ET.parse(recorded.folder / "junit.xml").getroot()
    assert (suite.get("failures"), suite.get("errors"), suite.get("tests")) == ("1", "0", "13")
    ((case, failure),) = [
        (case, failure) for case in suite.iter("testcase") for failure in case.iter("failure")
    ]
    assert case.get("name") == "acceptance"
    first = "failed: acceptance rate of `code`: 0.75 is below 0.882"
    assert f"{first}\nnow: 0.75\nstored: 0.9" in failure.get("message", "")
    assert "floor: 0.882" in failure.get("message", "")
    assert UPDATE in failure.get("message", "")
    properties = {each.get("name"): each.get("value") for each in case.iter("property")}
    assert properties["specdec_verdict"] == "failed"
    assert properties["specdec_now"] == "0.75"
    assert properties["specdec_stored"] == "0.9"
    assert properties["specdec_floor"] == "0.882"


def test_the_exit_code_of_a_process(recorded: Project) -> None:
    assert recorded.run_subprocess("suites", "-q").exit_code == 0
    failed = recorded.edit_stored(raise_by_a_fifth).run_subprocess("suites", "-q")
    assert failed.exit_code == 1
    assert "1 failed, 12 passed" in failed.text


def test_a_better_rate_than_stored_passes(recorded: Project) -> None:
    recorded.fake(accepted=2).record().fake()
    assert recorded.run("suites").counts == {"passed": 13}


def test_fewer_accepted_tokens_fail(recorded: Project) -> None:
    recorded.fake(accepted=2, speculative={"step_ms": 5.0})
    result = recorded.run("suites", "-k", "code")
    assert result.not_passed == {"code.jsonl::fast::acceptance": "failed"}
    assert result.message("acceptance").splitlines()[:4] == [
        "failed: acceptance rate of `code`: 0.5 is below 0.735",
        "now: 0.5",
        "stored: 0.75",
        "floor: 0.735 (stored less 2%)",
    ]
    assert "fell most: `one`, 9 of 12 accepted when stored, 8 of 16 now" in result.text


def test_a_slower_speculative_step_fails_the_speedup_alone(recorded: Project) -> None:
    recorded.fake(speculative={"step_ms": 20.0})
    result = recorded.run("suites", "-k", "code")
    assert result.not_passed == {"code.jsonl::fast::speedup": "failed"}
    assert result.message("speedup").splitlines() == [
        "failed: speedup of `code`: 1.625 is below 3.0875",
        "now: 1.625",
        "interval: 1.625 to 1.625 (confidence of each end: 97.51%, 99.5%)",
        "stored: 3.25",
        "floor: 3.0875 (stored less 5%)",
        "tokens per step: 3.25 stored, 3.25 now (speedup unmoved by it)",
        "step cost ratio: 1 stored, 2 now (speedup 50% lower by it)",
        "of the step cost, ms a speculative step: 10 stored, 20 now (speedup 50% lower by it)",
        "of the step cost, ms a baseline step: 10 stored, 10 now (speedup unmoved by it)",
        "the baseline engine by itself: 100 output tokens/s stored, 100 now",
        "what lowered it most: the step cost ratio: the speculative step costs more (speedup 50% "
        "lower by it)",
        "smallest fall below stored that fails here: 5%, 95% of the time",
        f"hint: if this is meant, record it: {UPDATE}",
    ]


def test_a_profile_s_minimum_holds_without_a_stored_baseline(project: Project) -> None:
    project.profile(tolerances={"min_speedup": 4.0, "min_mean_acceptance_length": 4.5})
    result = project.workload("code", EXACT).run("suites")
    assert result.not_passed == metrics("code", "failed")
    assert "floor: 4.5 (`min_mean_acceptance_length` of the profile)" in result.message(
        "acceptance"
    )
    assert result.message("speedup").splitlines()[-1] == (
        "hint: speculation does not pay here: change `speculative_config`, or lower `min_speedup` "
        "of the profile"
    )


@pytest.mark.parametrize(
    ("arguments", "environment", "word"),
    [
        ((), {}, "skipped"),
        ((), {"CI": "1"}, "failed"),
        ((), {"CI": "true"}, "failed"),
        ((), {"CI": "0"}, "skipped"),
        ((), {"CI": "false"}, "skipped"),
        (("--specdec-profile=fast",), {}, "failed"),
    ],
)
class TestUndecided:
    """What could not be decided fails a gate, and skips elsewhere."""

    def test_no_stored_baseline(
        self, project: Project, arguments: tuple[str, ...], environment: dict[str, str], word: str
    ) -> None:
        result = project.workload("code", EXACT).env(**environment).run("suites", *arguments)
        assert result.not_passed == metrics("code", word)
        assert result.exit_code == (1 if word == "failed" else 0)
        self.assert_told(result, "no stored baseline", "record one", arguments)

    def test_another_workload_than_stored(
        self, recorded: Project, arguments: tuple[str, ...], environment: dict[str, str], word: str
    ) -> None:
        recorded.workload("code", EXACT, "two").env(**environment)
        result = recorded.run("suites", *arguments)
        assert result.not_passed == metrics("code", word)
        assert "the workload is not the one that was stored" in result.message("acceptance")
        self.assert_told(result, "incomparable", "record it again", arguments)

    def test_other_hardware(
        self, recorded: Project, arguments: tuple[str, ...], environment: dict[str, str], word: str
    ) -> None:
        recorded.edit_stored(lambda data: data["hardware"].update(instruction_set="mmx"))
        result = recorded.env(**environment).run("suites", "-k", "code", *arguments)
        assert result.not_passed == metrics("code", word)
        assert "hardware `instruction_set`: mmx stored, " in result.message("acceptance")
        advice = (
            f"delete `{recorded.baselines_file()}`, which is of other hardware, and record again"
        )
        self.assert_told(result, "incomparable", advice, arguments)
        assert "record it again" not in result.text
        (workload,) = result.report["profiles"][0]["workloads"]
        assert workload["figures"]["acceptance_rate"]["stored"] is None

    def test_not_stored_in_a_file_of_other_hardware(
        self, recorded: Project, arguments: tuple[str, ...], environment: dict[str, str], word: str
    ) -> None:
        recorded.edit_stored(lambda data: data["hardware"].update(instruction_set="mmx"))
        recorded.edit_stored(lambda data: data["workloads"].pop("code"))
        result = recorded.env(**environment).run("suites", "-k", "code", *arguments)
        assert result.not_passed == metrics("code", word)
        advice = (
            f"delete `{recorded.baselines_file()}`, which is of other hardware, and record again"
        )
        self.assert_told(result, "no stored baseline", advice, arguments)

    def test_noise(
        self, recorded: Project, arguments: tuple[str, ...], environment: dict[str, str], word: str
    ) -> None:
        recorded.fake(speculative={"wall_factors": NOISE}).env(**environment)
        result = recorded.run("suites", "-k", "code", *arguments)
        assert result.not_passed == {"code.jsonl::fast::speedup": word}
        assert "inconclusive: speedup of `code`" in result.message("speedup")
        assert "pairs of passes would decide: set `num_blocks = " in result.message("speedup")

    def assert_told(
        self, result: Result, kind: str, advice: str, arguments: tuple[str, ...]
    ) -> None:
        chosen = " --specdec-profile fast" if arguments else ""
        command = f"`pytest suites{chosen} --update-baselines`"
        for metric, name in (("acceptance", "acceptance rate"), ("speedup", "speedup")):
            assert f"{kind}: {name} of `code`" in result.message(f"code.jsonl::fast::{metric}")
            assert f"{advice}: {command}" in result.message(f"code.jsonl::fast::{metric}")


@pytest.mark.parametrize("is_stored", [True, False])
@pytest.mark.parametrize(
    ("drafts", "reasons"),
    [
        ("none", ["nothing was drafted in 13 steps"] * 2),
        ("nobody", ["no draft counters, or no steps, were told"]),
    ],
)
def test_unmeasured_fails_stored_or_not(
    project: Project, drafts: str, reasons: list[str], is_stored: bool
) -> None:
    project.workload("code", EXACT)
    if is_stored:
        project.record()
    result = project.fake(drafts=drafts).run("suites")
    exercised, *failing = [name for name, word in result.outcomes.items() if word == "failed"]
    assert exercised == "code.jsonl::fast::exercised"
    assert [name.rpartition("::")[2] for name in failing] == ["acceptance", "speedup"][
        : len(reasons)
    ]
    for name, reason in zip(failing, reasons, strict=True):
        title, why, hint = result.message(name).splitlines()
        assert title.startswith("unmeasured: ")
        assert (why, hint[:6]) == (reason, "hint: ")


def test_unequal_work_has_no_speedup(project: Project) -> None:
    project.fake(speculative={"diverge": {"prompt": "abc", "at": "end"}})
    result = project.workload("code", EXACT).run("suites")
    assert result.outcomes["code.jsonl::fast::speedup"] == "failed"
    assert result.message("speedup").splitlines() == [
        "unmeasured: speedup of `code`",
        "the passes differ in output tokens (baseline 13, speculative 12), and unequal work has no "
        "speedup",
        "hint: passes of equal work need answers of equal length: set `ignore_eos` in the workload",
    ]


def test_counters_of_the_engine_alone_are_enough(recorded: Project) -> None:
    result = recorded.fake(drafts="engine").run("suites")
    assert result.counts == {"passed": 13}
    assert result.report["profiles"][0]["workloads"][0]["measurement"]["drafts_source"] == "engine"


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
DDL = "CREATE TABLE orders (id INTEGER, city TEXT)"
FREE_JSON = {"id": "j", "content": 'ANSWER: {"a": 1}', "expect": {"json_schema": SCHEMA}}
HELD_JSON = {"id": "j", "content": 'ANSWER: {"a": 1}', "response_format": FORMAT}
SQL = {
    "id": "s",
    "content": "ANSWER: SELECT id FROM orders;",
    "expect": {"sql": {"dialect": "sqlite", "ddl": DDL}},
}


@pytest.mark.parametrize(
    ("prompt", "answers", "name", "lines"),
    [
        pytest.param(
            FREE_JSON,
            {"speculative": '{"a": "one"}'},
            "json[j]",
            [
                "schema violation: `j`",
                "  on the speculative engine; the baseline engine's answer: valid",
                '  at `/a`: "one"',
                '  breaks `type`: "integer"',
            ],
            id="free JSON, broken by speculation",
        ),
        pytest.param(
            FREE_JSON, {"baseline": "[1"}, None, [], id="free JSON, broken without speculation"
        ),
        pytest.param(
            FREE_JSON,
            {"baseline": "[1", "speculative": "[1"},
            None,
            [],
            id="free JSON, both broken",
        ),
        pytest.param(
            HELD_JSON,
            {"baseline": '{"a": 1'},
            "json[j]",
            [
                "invalid JSON: `j`",
                "  on the baseline engine; the speculative engine's answer: valid",
            ],
            id="constrained JSON, broken without speculation",
        ),
        pytest.param(
            HELD_JSON,
            {"baseline": '{"a": 1', "speculative": '{"a": 1'},
            "json[j]",
            [
                "invalid JSON: `j`",
                "  on the speculative engine; the baseline engine's answer: invalid JSON",
            ],
            id="constrained JSON, both broken",
        ),
        pytest.param(
            SQL,
            {"speculative": "SELECT town FROM orders;"},
            "sql[s]",
            [
                "unknown name: `s`",
                "  on the speculative engine; the baseline engine's answer: valid",
            ],
            id="SQL, broken by speculation",
        ),
        pytest.param(SQL, {"baseline": "SELECT town FROM orders;"}, None, [], id="free SQL"),
    ],
)
def test_validity(
    project: Project, prompt: Any, answers: dict[str, str], name: str | None, lines: list[str]
) -> None:
    project.fake(**{role: {"answers": {"ANSWER": text}} for role, text in answers.items()})
    result = project.workload("code", prompt).run("suites", "-k", "json[j] or sql[s]")
    assert result.exit_code == (0 if name is None else 1)
    if name is None:
        assert result.counts == {"passed": 1}
    else:
        assert result.not_passed == {f"code.jsonl::fast::{name}": "failed"}
        assert result.message(name).splitlines()[: len(lines)] == lines


def test_expected_failures_work(recorded: Project) -> None:
    recorded.file(
        "conftest.py",
        "import pytest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        if 'identical[one]' in item.nodeid:\n"
        "            item.add_marker(pytest.mark.xfail(strict=True, reason='known'))\n",
    )
    recorded.fake(speculative={"diverge": {"prompt": "abc", "at": 3}})
    result = recorded.run("suites", "-k", "code")
    assert result.outcomes["code.jsonl::fast::identical[one]"] == "skipped"
    assert recorded.fake().run("suites", "-k", "code").exit_code == 1
