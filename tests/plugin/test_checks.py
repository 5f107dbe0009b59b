"""Each check through pytest: faultless engines pass all of a workload's items, and a faulty one
fails exactly the item that is about its fault."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.fake_engine.project import Project

LONG = "abc" * 12
# Its answers may differ, so that `identical` is not about them.
WARM = {"temperature": 0.5, "content": f"ANSWER: {LONG}"}
PLAIN = {"id": "one", "content": f"ANSWER: {LONG}"}
OWN = {"id": "own", "temperature": 1, "max_tokens": 240}
SEEDED = {"id": "r", "temperature": 0.5, "seed": 7}
REFUSED = {"id": "min", "min_p": 0.1, "expect": {"refused": True}}
SPECULATIVE_REFUSES = {"speculative": {"refuses": ["min_p"]}}
VOCAB = "model_config.hf_text_config.vocab_size"


def case(
    name: str,
    prompt: Any,
    faulty: dict[str, Any],
    told: str,
    *,
    faultless: dict[str, Any] | None = None,
    gated: bool = False,
) -> Any:
    """`told` is the message's first line."""
    parts = (name, prompt, faultless or {}, faulty, told, gated)
    return pytest.param(*parts, id=f"{name}: {told}")


@pytest.mark.parametrize(
    ("name", "prompt", "faultless", "faulty", "told", "gated"),
    [
        case(
            "identical[one]",
            PLAIN,
            {"speculative": {"diverge": {"prompt": "abc", "at": 3}}},
            "divergence: `one`",
        ),
        case(
            "json[j]",
            {**WARM, "id": "j", "expect": {"json_schema": {"type": "object"}}}
            | {"content": f'ANSWER: {{"a": "{LONG}"}}'},
            {"speculative": {"answers": {"ANSWER": f"[{LONG}]"}}},
            "invalid JSON: `j`",
        ),
        case(
            "sql[s]",
            {
                **WARM,
                "id": "s",
                "content": "ANSWER: SELECT a FROM t WHERE a = 1;",
                "expect": {"sql": {"dialect": "sqlite", "ddl": "CREATE TABLE t (a INTEGER)"}},
            },
            {"speculative": {"answers": {"ANSWER": "SELECT b FROM t WHERE a = 1;"}}},
            "unknown name: `s`",
        ),
        case(
            "regex[x]",
            {**WARM, "id": "x", "structured_outputs": {"regex": "(abc)+"}},
            {"speculative": {"answers": {"ANSWER": "xyz" * 12}}},
            "regex mismatch: `x`",
        ),
        case(
            "choice[c]",
            {
                **WARM,
                "id": "c",
                "content": f"ANSWER: {LONG}{LONG}",
                "structured_outputs": {"choice": [f"{LONG}{LONG}", "no"]},
            },
            {"speculative": {"answers": {"ANSWER": f"{LONG}{LONG}x"}}},
            "text after the end: `c`",
        ),
        case("replay[r]", SEEDED, {"speculative": {"is_replayed": False}}, "not repeated: `r`"),
        case("replay[r]", SEEDED, {"baseline": {"is_replayed": False}}, "not repeated: `r`"),
        case(
            "honoured[h]",
            {**WARM, "id": "h", "content": f"ANSWER: {LONG} END {LONG}", "stop": "END"},
            {"speculative": {"ignores": ["stop"]}},
            "text after stop: `h`",
        ),
        case(
            "honoured[h]",
            {**WARM, "id": "h", "n": 2},
            {"speculative": {"ignores": ["n"]}},
            "answers missing: `h`",
        ),
        case(
            "logprobs[l]",
            {**PLAIN, "id": "l", "logprobs": 0},
            {"speculative": {"logprob_shift": -0.2}},
            "logprobs differ: `l`",
        ),
        case(
            "logprobs[l]",
            {**PLAIN, "id": "l", "logprobs": 0},
            {"speculative": {"ignores": ["logprobs"]}},
            "logprobs missing: `l`",
        ),
        case(
            "refused[min]",
            REFUSED,
            {},
            "not refused: `min`",
            faultless=SPECULATIVE_REFUSES,
        ),
        case(
            "refused[min]",
            REFUSED,
            {"refuses": ["min_p"]},
            "refused without speculation: `min`",
            faultless=SPECULATIVE_REFUSES,
        ),
        case("exercised", PLAIN, {"drafts": "none"}, "nothing drafted"),
        case("exercised", PLAIN, {"accepted": 4}, "nothing rejected"),
        case("counts", PLAIN, {"speculative": {"extra_usage": 1}}, "miscounted"),
        case("counts", PLAIN, {"baseline": {"extra_usage": 1}}, "miscounted"),
        # Call 1 is the warm-up, calls 2 and 3 are the passes of one block.
        case(
            "drift",
            PLAIN,
            {"accepted_from": [3, 2]},
            "acceptance drifts",
            gated=True,
        ),
        case(
            "distribution",
            OWN,
            {"speculative": {"drawn": "likeliest"}},
            "distribution",
        ),
        case("distribution", OWN, {"baseline": {"drawn": "likeliest"}}, "uncalibrated"),
        case("distribution", OWN, {"config": {VOCAB: None}}, "not judged"),
    ],
)
def test_a_fault_fails_the_item_that_is_about_it(
    project: Project,
    name: str,
    prompt: dict[str, Any],
    faultless: dict[str, Any],
    faulty: dict[str, Any],
    told: str,
    *,
    gated: bool,
) -> None:
    header: dict[str, Any] = {} if gated else {"gated": []}
    project.workload("code", "beside", prompt, **header)
    item = f"code.jsonl::fast::{name}"
    skipped = {
        f"code.jsonl::fast::{each}": "skipped" for each in ("acceptance", "speedup") if gated
    }
    right = project.fake(**faultless).run("suites")
    assert (right.exit_code, right.not_passed) == (0, skipped), right.text
    assert right.outcomes[item] == "passed"
    wrong = project.fake(**faulty).run("suites")
    assert (wrong.exit_code, wrong.not_passed) == (1, {**skipped, item: "failed"}), wrong.text
    assert wrong.message(name).splitlines()[0] == told


def test_refused_prompts_are_in_no_pass(project: Project) -> None:
    project.workload("code", PLAIN, REFUSED).fake(**SPECULATIVE_REFUSES).record()
    result = project.run("suites")
    assert result.outcomes == {
        f"code.jsonl::fast::{name}": "passed"
        for name in (
            "identical[one]",
            "refused[min]",
            "exercised",
            "counts",
            "drift",
            "acceptance",
            "speedup",
        )
    }
    asked = [
        (each["role"], ["min_p" in request for request in each["command"]["requests"]])
        for each in result.commands
        if each["op"] == "generate"
    ]
    # Once by each engine, alone, and after its timed passes.
    assert [each for each in asked if each[1] != [False]] == [
        ("baseline", [True]),
        ("speculative", [True]),
    ]
    assert asked[-2:] == [("baseline", [True]), ("speculative", [True])]
    (workload,) = result.report["profiles"][0]["workloads"]
    assert [(each["role"], each["said"]) for each in workload["runs"]["refusals"]] == [
        ("baseline", None),
        (
            "speculative",
            "the speculative engine of profile `fast` refused a request: `min_p` is not supported "
            "with speculation",
        ),
    ]
    assert list(project.stored()["workloads"]["code"]["acceptance"]["prompts"]) == ["one"]


def test_control_runs_ask_no_prompt_that_is_to_be_refused(project: Project) -> None:
    diverging = {"refuses": ["min_p"], "diverge": {"prompt": "abc", "at": 3}}
    project.workload("code", PLAIN, "two", REFUSED, gated=[]).fake(speculative=diverging)
    result = project.run("suites")
    assert result.not_passed == {"code.jsonl::fast::identical[one]": "failed"}
    assert "all 2 prompts, 2 in flight: the same answer" in result.message("identical[one]")


def test_sampled_answers_are_scored_once_by_the_baseline_engine(project: Project) -> None:
    project.profile(num_loads=2, num_blocks=1)
    project.workload("code", "beside", OWN, {**OWN, "id": "other"})
    result = project.run("suites", "--update-baselines")
    assert (result.not_passed, result.loads()) == ({}, ["baseline", "speculative"] * 2)
    scored = [each["role"] for each in result.commands if each["op"] == "score"]
    assert scored == ["baseline"] * 4


@pytest.mark.parametrize("sampled", [["code"], ["code", "more"]])
def test_sampled_answers_of_all_engines_and_workloads_share_one_allowance(
    project: Project, sampled: list[str]
) -> None:
    for name in sampled:
        project.workload(name, OWN, "beside", gated=[])
    project.workload("plain", PLAIN, gated=[])
    result = project.fake(speculative={"drawn": "likeliest"}).run("suites")
    # Each engine's tokens can fail a workload's test.
    asked_for = math.log(2 * len(sampled) / 0.01)
    for name in sampled:
        message = result.message(f"{name}.jsonl::fast::distribution")
        assert message.count(f"({asked_for:.2f} asked for, ") == 2, message


@pytest.mark.parametrize(
    ("max_tokens", "left", "num_scored", "not_passed"),
    [
        (240, 241, 240, []),
        (240, 240, 239, []),
        (200, 200, 199, ["tokens: 199 baseline, 199 speculative"]),
    ],
)
def test_an_answer_that_fills_the_window_is_scored_but_for_its_last_token(
    project: Project, max_tokens: int, left: int, num_scored: int, not_passed: list[str]
) -> None:
    prompt = {**OWN, "content": "abcdef", "max_tokens": max_tokens}
    window = {"model_config.max_model_len": 2 + left}
    project.workload("code", prompt, gated=[]).fake(config={VOCAB: 4, **window})
    result = project.run("suites")
    scored = [each["command"]["token_ids"] for each in result.commands if each["op"] == "score"]
    assert [len(each) for each in scored] == [num_scored] * 2
    item = "code.jsonl::fast::distribution"
    assert list(result.not_passed) == [item for _ in not_passed]
    assert all(told in result.message(item) for told in not_passed)


def test_a_workload_of_one_engine_at_a_time_is_checked_all_the_same(project: Project) -> None:
    project.profile(layout="sequential").fake(**SPECULATIVE_REFUSES)
    project.workload("code", PLAIN, SEEDED, OWN, REFUSED, again=["not-streamed"])
    result = project.record().run("suites")
    assert (result.exit_code, result.not_passed) == (0, {})
    assert "code.jsonl::fast::again[not-streamed]" in result.outcomes
    # Once more for the scores.
    assert result.loads() == ["baseline", "speculative", "baseline"]
