"""`--specdec-worth-it`: which points there are, what is measured at each, and what fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_specdec.report.facts import ProfileReport
from pytest_specdec.session import GateSession
from pytest_specdec.worth_it import PointGain, WorthIt
from tests.fake_engine.project import FAST, Project, Result

EXACT = {"id": "one", "content": "ANSWER: " + "abc" * 12}
TWO = (EXACT, {**EXACT, "id": "two", "content": f"Two. {EXACT['content']}"})
# A speculative step at so many times a plain one's cost; 3.25 tokens come of one.
LOSES = {"speculative": {"step_ms": 40.0}}
K1 = {"num_speculative_tokens": 1}
ABBA = ["baseline", "speculative", "speculative", "baseline"]


class Kept:
    """A pytest plugin: what sessions had to report."""

    reports: tuple[ProfileReport, ...] = ()


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    kept, finish = Kept(), GateSession.finish

    def finished(self: GateSession, *, is_complete: bool) -> bool:
        is_stored = finish(self, is_complete=is_complete)
        kept.reports = self.reports
        return is_stored

    monkeypatch.setattr(GateSession, "finish", finished)
    return kept


def asked(project: Project, *arguments: str) -> Result:
    return project.run("suites", "--specdec-worth-it", *arguments)


def answer(kept: Kept) -> WorthIt:
    (report,) = kept.reports
    assert report.worth_it is not None
    return report.worth_it


def names(points: Mapping[Any, Any] | Any) -> list[tuple[str, str, str]]:
    return [(each.workload, each.point.name, each.answer) for each in points]


def point(workload: str, load: int = 1, profile: str = "fast") -> str:
    return f"{workload}.jsonl::{profile}::worth-it[in_flight={load}]"


def test_each_workload_is_timed_at_each_point_of_its_sweep(project: Project, kept: Kept) -> None:
    project.workload("code", *TWO, sweep={"in_flight": [1, 2]}).workload("story", EXACT)
    result = asked(project)
    assert (result.exit_code, result.outcomes) == (
        0,
        dict.fromkeys([point("code"), point("code", 2), point("story")], "passed"),
    )
    assert names(answer(kept).points) == [
        ("code", "in_flight=1", "gains"),
        ("code", "in_flight=2", "gains"),
        ("story", "in_flight=1", "gains"),
    ]
    # Two blocks at each of two points; the engines are started once.
    assert result.passes("code") == ABBA * 4
    assert result.passes("story") == ABBA * 2
    assert result.loads() == ["baseline", "speculative"]
    assert "stored" not in result.text
    (report,) = kept.reports
    assert (report.verdict, report.workloads, report.not_run) == ("passed", [], {})


def test_what_is_measured_at_a_point(project: Project, kept: Kept) -> None:
    project.workload("code", *TWO, sweep={"in_flight": [2]})
    result = asked(project)
    loads = {each["command"]["concurrency"] for each in result.commands if each["op"] == "generate"}
    # What steps cost would take longer to measure than a sweep.
    assert loads == {2}
    (found,) = answer(kept).points
    assert (found.workload, found.changes, found.num_speculative_tokens) == ("code", {}, 4)
    assert (found.acceptance_rate, found.mean_acceptance_length) == (0.75, 4.0)
    assert found.gain == pytest.approx(3.25)
    # The fake engine's tokens have three characters.
    chars = [len(str(each["content"])) for each in TWO]
    assert found.num_prompt_tokens == sum(-(-each // 3) for each in chars) / 2


def test_the_junit_file_has_the_gain(project: Project) -> None:
    project.workload("code", *TWO)
    asked(project, "--junitxml=junit.xml")
    told = (project.folder / "junit.xml").read_text()
    assert '<property name="specdec_gain" value="3.25' in told
    assert '<property name="specdec_answer" value="gains"' in told


def test_what_steps_cost_is_measured_where_there_is_no_sweep(project: Project, kept: Kept) -> None:
    result = asked(project.workload("code", *TWO, concurrency=2))
    loads = [each["command"]["concurrency"] for each in result.commands if each["op"] == "generate"]
    # A verification has (k + 1) tokens of each request; it comes after all passes.
    assert ({*loads}, loads.index(10) > len(ABBA) * 2) == ({2, 10}, True)
    (found,) = answer(kept).points
    assert found.expected == found.tokens_per_step_ratio


def test_only_what_has_a_sweep_or_gates_its_speedup_has_points(project: Project) -> None:
    project.workload("plain", EXACT, gated=[]).workload("rate", EXACT, gated=["acceptance"])
    project.workload("swept", EXACT, gated=[], sweep={"in_flight": [1]})
    result = asked(project)
    assert result.outcomes == {point("swept"): "passed"}
    assert result.passes("swept") == ABBA * 2


def test_records_and_temperatures_are_sent(project: Project, kept: Kept) -> None:
    project.workload(
        "orders",
        {"id": "one", "content": "{records}\nANSWER: " + "abc" * 12},
        sweep={"context_tokens": [64, 256], "temperature": [0, 1]},
    )
    result = asked(project)
    assert [name.partition("::worth-it")[2] for name in result.outcomes] == [
        f"[in_flight=1,context_tokens={tokens},temperature={temperature}]"
        for temperature in (0, 1)
        for tokens in (64, 256)
    ]
    sent = [
        (len(request["messages"][0]["content"]) > 300, request["temperature"])
        for each in result.commands
        if each["op"] == "generate"
        for request in each["command"]["requests"]
    ]
    assert set(sent) == {(False, 0), (True, 0), (False, 1), (True, 1)}
    short, long, *_ = (each.num_prompt_tokens or 0 for each in answer(kept).points)
    assert long > 3 * short
    # Nothing is asked beside the passes.
    assert "score" not in {each["op"] for each in result.commands}


def test_an_ordinary_session_takes_the_workload_as_it_is(project: Project) -> None:
    project.workload("orders", *TWO, gated=[], sweep={"in_flight": [1, 2], "temperature": [1]})
    result = project.run("suites")
    assert result.counts == {"passed": 4}
    assert "orders.jsonl::fast::identical[two]" in result.outcomes
    assert result.report["profiles"][0]["workloads"][0]["name"] == "orders"


def test_no_point_is_decided_early(project: Project, kept: Kept) -> None:
    project.profile(num_blocks=1, num_loads=3, worth_it={"num_blocks": 3})
    result = asked(project.workload("code", EXACT))
    assert result.passes("code") == ABBA * 3
    assert len(result.loads()) == 2
    assert answer(kept).points[0].answer == "gains"


def test_stored_numbers_are_neither_read_nor_written(project: Project) -> None:
    project.workload("code", EXACT).record()
    file = project.baselines_file()
    before = file.read_text()
    project.fake(accepted=1)  # a fall that a gate would find
    assert asked(project, "--specdec-strict-baselines").outcomes == {point("code"): "passed"}
    assert file.read_text() == before
    file.write_text("{")
    assert asked(project).exit_code == 0


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        (
            "--update-baselines",
            "`--specdec-worth-it` and `--update-baselines` contradict each other: points of a "
            "sweep are not stored",
        ),
        (
            "--specdec-record=kept",
            "`--specdec-worth-it` and `--specdec-record` contradict each other: points of a sweep "
            "are not recorded",
        ),
        ("--specdec-replay=kept", "`--specdec-worth-it` and `--specdec-replay` contradict each"),
    ],
)
def test_refuses_to_do_both(project: Project, argument: str, said: str) -> None:
    result = asked(project.workload("code", EXACT), argument)
    assert result.exit_code == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {said}" in result.text
    assert "hint: leave one of them out" in result.text
    assert not result.commands


def test_it_asks_for_engines(project: Project) -> None:
    """Where there are none that is an error, and no skip."""
    project.workload("code", EXACT).fake(on={"hello": ["unavailable", "No module named 'vllm'"]})
    assert asked(project).exit_code == pytest.ExitCode.USAGE_ERROR


def test_a_loss_is_an_answer_and_no_failure(project: Project, kept: Kept) -> None:
    result = asked(project.workload("code", EXACT).fake(**LOSES))
    assert (result.exit_code, result.counts) == (0, {"passed": 1})
    assert names(answer(kept).points) == [("code", "in_flight=1", "loses")]
    assert kept.reports[0].verdict == "passed"


def test_greedy_answers_that_differ_fail_the_point(project: Project, kept: Kept) -> None:
    project.workload("code", *TWO, sweep={"in_flight": [1, 2]}).workload("story", EXACT)
    result = asked(project.fake(speculative={"diverge": {"prompt": "Two.", "at": 5}}))
    assert result.not_passed == {point("code"): "failed", point("code", 2): "failed"}
    assert "divergence" in result.messages[point("code", 2)]
    assert [each for *_, each in names(answer(kept).points)] == [*["not identical"] * 2, "gains"]
    (report,) = kept.reports
    assert report.verdict == "failed"
    assert [each.assessment.workload.name for each in report.workloads] == [
        "code@in_flight=1",
        "code@in_flight=2",
    ]


def test_a_known_defect_explains_answers_that_differ(project: Project, kept: Kept) -> None:
    project.workload("code", EXACT).fake(speculative={"diverge": {"prompt": "abc", "at": 5}})
    table = (project.folder / "specdec.toml").read_text()
    project.file(
        "specdec.toml",
        f'{table}[[profiles.fast.known_defects]]\ncheck = "identical"\nworkload = "code"\n'
        'versions = ">=0.1"\nreason = "why"\n',
    )
    result = asked(project)
    assert (result.exit_code, result.counts) == (0, {"skipped": 1})
    assert answer(kept).points[0].answer == "gains"
    assert (kept.reports[0].verdict, kept.reports[0].workloads) == ("passed", [])


def test_a_gain_that_must_be_there_fails_where_it_is_not(project: Project, kept: Kept) -> None:
    project.profile(worth_it={"must_gain": {"code": [2]}})
    project.workload("code", *TWO, sweep={"in_flight": [1, 2]}).workload("story", EXACT)
    result = asked(project.fake(**LOSES))
    assert result.not_passed == {point("code", 2): "failed"}
    assert "`code` must gain at in_flight=2" in result.messages[point("code", 2)]
    assert len(answer(kept).unmet) == 1
    assert kept.reports[0].verdict == "failed"


def test_a_gain_that_must_be_there_is_not_missed_where_it_was_not_asked_for(
    project: Project, kept: Kept
) -> None:
    project.profile(worth_it={"must_gain": {"code": [2], "story": [1]}})
    project.workload("code", *TWO, sweep={"in_flight": [1, 2]}).workload("story", EXACT)
    result = project.run("--specdec-worth-it", f"suites/{point('code', 2)}")
    assert result.outcomes == {point("code", 2): "passed"}
    assert answer(kept).unmet == []
    assert (kept.reports[0].verdict, kept.reports[0].not_run) == ("passed", {})


@pytest.mark.parametrize(
    ("must_gain", "said"),
    [
        (
            {"cod": [1]},
            "`profiles.fast.worth_it.must_gain.cod` is no workload of the suites\n"
            "hint: did you mean `code`?",
        ),
        (
            {"code": [2, 3]},
            "`profiles.fast.worth_it.must_gain.code` names 3 in flight, and the workload is "
            "measured at: 1, 2\nhint: add it to `sweep.in_flight` in its header: ",
        ),
        (
            {"story": [1]},
            "`profiles.fast.worth_it.must_gain.story` is not measured: the workload does not gate "
            "its speedup and has no `sweep`\nhint: add a `sweep` to its header: ",
        ),
    ],
)
def test_refuses_a_gain_where_nothing_is_measured(
    project: Project, must_gain: Mapping[str, Any], said: str
) -> None:
    project.profile(worth_it={"must_gain": must_gain})
    project.workload("code", *TWO, sweep={"in_flight": [1, 2]}).workload("story", EXACT, gated=[])
    for selection in ((), ("-k", "nothing")):
        result = asked(project, *selection)
        assert result.exit_code == pytest.ExitCode.USAGE_ERROR
        assert said in result.text
    assert project.run("suites").exit_code == 0  # it is for such sessions alone


def test_a_variant_is_measured_after_its_profile(project: Project, kept: Kept) -> None:
    project.profile(worth_it={"speculative_configs": [K1], "must_gain": {"code": [1]}})
    project.workload("code", *TWO, concurrency=2, sweep={"in_flight": [1, 2]})
    result = asked(project.workload("story", EXACT).fake(accepted=1))
    variant = "fast@num_speculative_tokens=1"
    assert list(result.outcomes) == [
        point("code"),
        point("code", 2),
        point("story"),
        point("code", 2, variant),
        point("story", 1, variant),
    ]
    assert result.loads() == ["baseline", "speculative"] * 2
    assert [(each.workload, each.changes) for each in answer(kept).points] == [
        *([("code", {})] * 2),
        ("story", {}),
        ("code", K1),
        ("story", K1),
    ]
    assert [each.num_speculative_tokens for each in answer(kept).points] == [4, 4, 4, 1, 1]
    # A variant is no profile of its own.
    assert [each.profile.name for each in kept.reports] == ["fast"]


def test_a_variant_that_does_not_start_is_an_error_of_the_profile(
    project: Project, kept: Kept
) -> None:
    project.profile(worth_it={"speculative_configs": [{"model": "no/draft/"}]})
    project.file("no/draft/config.json", "{}")
    result = asked(project.workload("code", EXACT))
    assert result.exit_code != 0
    assert not kept.reports or kept.reports[0].verdict == "error"


def test_what_cannot_run_is_an_error(project: Project, kept: Kept) -> None:
    project.workload("code", EXACT).workload("seeded", {**EXACT, "seed": 1})
    result = asked(project.fake(speculative={"refuses": ["seed"]}))
    assert result.not_passed == {point("seeded"): "error"}
    (report,) = kept.reports
    assert report.verdict == "error"
    assert "`seed` is not supported" in report.not_run["seeded@in_flight=1"]


@pytest.mark.parametrize(
    ("config", "name", "said"),
    [
        (
            {"scheduler_config.max_num_seqs": 1},
            "in_flight=2,context_tokens=64",
            "2 in flight: the engine's `max_num_seqs` is 1",
        ),
        (
            {"model_config.max_model_len": 1024},
            "in_flight=1,context_tokens=1000",
            "1000 tokens of records and 40 of an answer: the engine's `max_model_len` is 1024",
        ),
    ],
)
def test_a_point_that_does_not_fit_the_engine_is_skipped(
    project: Project, kept: Kept, config: Mapping[str, int], name: str, said: str
) -> None:
    prompts = [{"id": each, "content": "{records}\nANSWER: " + "abc" * 12} for each in "ab"]
    project.workload("orders", *prompts, sweep={"in_flight": [1, 2], "context_tokens": [64, 1000]})
    result = asked(project.fake(config=config))
    assert result.message(f"[{name}]") == f"Skipped: {said}"
    assert result.counts == {"passed": 2, "skipped": 2}
    assert (result.exit_code, kept.reports[0].verdict, kept.reports[0].not_run) == (0, "passed", {})


def test_a_last_point_that_does_not_fit_leaves_the_costs_of_the_others(
    project: Project, kept: Kept
) -> None:
    project.workload("code", EXACT).workload("zoo", *TWO, sweep={"in_flight": [2]})
    result = asked(project.fake(config={"scheduler_config.max_num_seqs": 1}))
    assert result.counts == {"passed": 1, "skipped": 1}
    (found,) = answer(kept).points
    # An n-gram draft costs no step.
    assert found.expected == found.tokens_per_step_ratio


def test_tests_of_ones_own_run_as_before(project: Project, kept: Kept) -> None:
    project.workload("code", EXACT).file(
        "suites/test_own.py",
        "import pytest\n"
        "def test_role(baseline_engine): assert baseline_engine.role == 'baseline'\n"
        '@pytest.mark.specdec("code.jsonl")\n'
        "def test_runs(runs): assert runs.baseline.workload == 'code'\n",
    )
    project.profile(worth_it={"speculative_configs": [K1]})
    result = asked(project.fake(accepted=1))
    assert result.counts == {"passed": 4}
    (report,) = kept.reports
    assert [each.outcome for each in report.own_tests] == ["passed", "passed"]
    assert (report.verdict, report.workloads) == ("passed", [])
    assert len(answer(kept).points) == 2


def test_a_session_that_ends_early_is_an_error(project: Project, kept: Kept) -> None:
    project.workload("code", *TWO, sweep={"in_flight": [1, 2]})
    asked(project.fake(speculative={"diverge": {"prompt": "abc", "at": 5}}), "-x")
    (report,) = kept.reports
    assert report.not_run == {"code@in_flight=2": "the session ended before it"}
    assert report.verdict == "error"


def test_two_profiles_have_an_answer_each(project: Project, kept: Kept) -> None:
    project.profiles(fast=FAST, other={**FAST, "worth_it": {"speculative_configs": [K1]}})
    result = asked(
        project.workload("code", EXACT).fake(accepted=1),
        "--specdec-profile=fast",
        "--specdec-profile=other",
    )
    assert result.counts == {"passed": 3}
    assert [
        (each.profile.name, len(each.worth_it.points)) for each in kept.reports if each.worth_it
    ] == [("fast", 1), ("other", 2)]


def test_under_xdist_all_is_as_without_it(project: Project, kept: Kept) -> None:
    pytest.importorskip("xdist")
    project.profile(worth_it={"speculative_configs": [K1], "must_gain": {"code": [2]}})
    project.workload("code", *TWO, sweep={"in_flight": [1, 2]}).workload("story", EXACT)
    project.fake(accepted=1)
    alone, expected = asked(project), answer(kept)
    result = asked(project, "-p", "xdist.plugin", "-n2")
    assert result.outcomes == alone.outcomes
    assert [each.profile.name for each in kept.reports] == ["fast"]

    def told(found: WorthIt) -> list[tuple[PointGain, ...]]:
        return [tuple(found.points)]

    assert told(answer(kept)) == told(expected)
    assert answer(kept).unmet == expected.unmet
    # The points of a profile, and those of a variant, run on one worker.
    assert sorted(result.loads()) == sorted(["baseline", "speculative"] * 2)


def test_a_session_without_the_option_has_no_answer(project: Project, kept: Kept) -> None:
    project.workload("code", EXACT).record()
    project.run("suites")
    assert [each.worth_it for each in kept.reports] == [None]
