"""What an engine said: sums over answers and passes, and JSON both ways."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_specdec.conditions import Conditions
from pytest_specdec.counters import DraftCounters, Usage
from pytest_specdec.generation import (
    Completion,
    Generation,
    Pass,
    Refusal,
    Retake,
    Run,
    RunPair,
    SampleScores,
    TokenScore,
)
from tests.said import generation, pair, run, walk

COUNTS = st.integers(0, 10**9)
TIMES = st.floats(0, 1e6, allow_nan=False)
IDS = st.lists(COUNTS, max_size=5).map(tuple)
DRAFTS = st.none() | st.builds(
    DraftCounters,
    num_drafts=COUNTS,
    num_draft_tokens=COUNTS,
    num_accepted_tokens=COUNTS,
    num_accepted_tokens_per_pos=IDS,
)
USAGES = st.none() | st.builds(
    Usage,
    num_prompt_tokens=COUNTS,
    num_generation_tokens=COUNTS,
    num_cached_tokens=COUNTS,
    num_preemptions=COUNTS,
)
LOGPROBS = st.floats()  # an engine may tell what is no probability, or no number
STOP_REASONS = st.none() | COUNTS | st.text()
COMPLETIONS = st.builds(
    Completion,
    token_ids=IDS,
    text=st.text(),
    finish_reason=st.sampled_from(["stop", "length"]),
    stop_reason=STOP_REASONS,
)
GENERATIONS = st.builds(
    Generation,
    prompt_id=st.text(),
    prompt_token_ids=IDS,
    token_ids=IDS,
    text=st.text(),
    finish_reason=st.sampled_from(["stop", "length", "abort", "error"]),
    stop_reason=STOP_REASONS,
    step_tokens=IDS,
    ttft_ms=TIMES,
    tpot_ms=st.none() | TIMES,
    drafts=DRAFTS,
    usage=USAGES,
    logprobs=st.none() | st.lists(st.none() | LOGPROBS, max_size=3).map(tuple),
    others=st.lists(COMPLETIONS, max_size=2).map(tuple),
    bad_words_token_ids=st.none() | st.lists(IDS, max_size=2).map(tuple),
)
PASSES = st.builds(
    Pass,
    generations=st.lists(GENERATIONS, max_size=3).map(tuple),
    wall_s=TIMES,
    drafts=DRAFTS,
    usage=USAGES,
)
ROLES = st.sampled_from(["baseline", "speculative"])
RUNS = st.builds(
    Run, role=ROLES, workload=st.text(), passes=st.lists(PASSES, min_size=1, max_size=3).map(tuple)
)
CONDITIONS = st.builds(
    Conditions,
    device=st.sampled_from(["cpu", "gpu"]),
    wall_s=TIMES,
    other_cpu_share=st.none() | st.floats(0, 1),
    throttle_reasons=st.none() | st.lists(st.text(), max_size=2).map(tuple),
    other_gpu_processes=st.none() | IDS,
    sm_clock_mhz=st.none() | st.tuples(COUNTS, COUNTS),
)
SCORES = st.builds(
    TokenScore,
    token_id=COUNTS,
    text=st.text(),
    logprob=LOGPROBS,
    rank=COUNTS,
    argmax_token_id=COUNTS,
    argmax_text=st.text(),
    argmax_logprob=LOGPROBS,
    top_logprobs=st.lists(LOGPROBS, max_size=3).map(tuple),
)
RETAKES = st.builds(
    Retake,
    circumstance=st.text(),
    baseline=st.none() | PASSES,
    speculative=st.none() | PASSES,
    missing=st.none() | st.text(),
)
SAMPLE_SCORES = st.builds(
    SampleScores,
    role=ROLES,
    prompt_id=st.text(),
    scores=st.lists(SCORES, max_size=2).map(tuple),
)
REFUSALS = st.builds(Refusal, role=ROLES, prompt_id=st.text(), said=st.none() | st.text())
PAIRS = st.builds(
    RunPair,
    baseline=RUNS,
    speculative=RUNS,
    order=st.lists(ROLES, max_size=8).map(tuple),
    num_loads=st.integers(1, 9),
    conditions=st.lists(CONDITIONS, max_size=2).map(tuple),
    retakes=st.lists(RETAKES, max_size=2).map(tuple),
    sample_scores=st.lists(SAMPLE_SCORES, max_size=2).map(tuple),
    refusals=st.lists(REFUSALS, max_size=2).map(tuple),
)


@settings(deadline=None, max_examples=50)
@given(PAIRS)
def test_json_both_ways(runs: RunPair) -> None:
    text = json.dumps(runs.to_json(), allow_nan=False)
    # As text, since what is no number does not equal itself.
    assert repr(RunPair.from_json(json.loads(text))) == repr(runs)


@settings(deadline=None, max_examples=50)
@given(st.one_of(GENERATIONS, PASSES, RUNS))
def test_parts_go_both_ways_too(part: Generation | Pass | Run) -> None:
    text = json.dumps(part.to_json(), allow_nan=False)
    assert repr(type(part).from_json(json.loads(text))) == repr(part)


@pytest.mark.parametrize(
    ("logprob", "word"),
    [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (-0.5, -0.5)],
)
def test_a_logprob_that_json_has_no_number_for_is_a_word(logprob: float, word: object) -> None:
    data = generation(logprobs=(-1.5, logprob, None)).to_json()
    assert data["logprobs"] == (-1.5, word, None)
    assert repr(Generation.from_json(data).logprobs) == repr((-1.5, logprob, None))
    # A worker tells the number itself.
    assert repr(Generation.from_json({**data, "logprobs": [logprob]}).logprobs) == f"({logprob},)"


def test_a_word_that_was_said_stays_one() -> None:
    said = generation(text="NaN", prompt_id="Infinity")
    assert Generation.from_json(json.loads(json.dumps(said.to_json()))) == said


@pytest.mark.parametrize(
    "data",
    [
        {**generation().to_json(), "surprise": 1},
        {key: value for key, value in generation().to_json().items() if key != "text"},
    ],
)
def test_json_of_another_shape_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        Generation.from_json(data)


def test_figures_of_a_pass() -> None:
    taken = walk(generation("one", (1, 2, 3)), generation("two", (4,)), wall_s=0.5)
    assert (taken.num_output_tokens, taken.num_steps, taken.output_tokens_per_s) == (4, 4, 8.0)
    assert taken.generation("two").token_ids == (4,)
    with pytest.raises(KeyError, match="three"):
        taken.generation("three")


def test_a_run_s_answers_are_its_first_pass_and_its_counts_those_of_all() -> None:
    drafts = DraftCounters(num_drafts=2, num_draft_tokens=8)
    first = walk(generation("one", (1,)), drafts=drafts)
    again = walk(generation("one", (2,)), drafts=drafts)
    taken = run("speculative", first, again)
    assert taken.generations == first.generations
    assert taken.drafts == DraftCounters(num_drafts=4, num_draft_tokens=16)
    assert run("baseline", walk(generation())).drafts is None


def test_a_pair_gives_each_engine_s_run() -> None:
    runs = pair([walk(generation())], [walk(generation())])
    assert runs.run("baseline") is runs.baseline
    assert runs.run("speculative") is runs.speculative
    assert runs.workload == "code"


def test_passes_of_a_load_are_one_engine_s() -> None:
    runs = pair([walk(generation())] * 6, [walk(generation())] * 6)
    assert runs.passes_per_load == 6
    assert replace(runs, num_loads=3).passes_per_load == 2


def test_a_token_s_score_out_of_json() -> None:
    told = {
        "token_id": 8,
        "text": "b",
        "logprob": -2.5,
        "rank": 4,
        "argmax_token_id": 9,
        "argmax_text": "a",
        "argmax_logprob": -0.5,
    }
    score = TokenScore.from_json(told)
    assert (score.logprob, score.top_logprobs) == (-2.5, ())
    again = TokenScore.from_json({**told, "top_logprobs": [-0.5, -2.5]})
    assert again == replace(score, top_logprobs=(-0.5, -2.5))


def test_what_a_worker_of_before_did_not_tell_is_unknown() -> None:
    """Of no count is it said that there was none."""
    data = generation().to_json()
    for key in ("usage", "logprobs", "others"):
        del data[key]
    answer = Generation.from_json(data)
    assert (answer.usage, answer.logprobs, answer.others) == (None, None, ())
    taken = walk(generation()).to_json()
    del taken["usage"]
    assert Pass.from_json(taken).usage is None


def test_the_answers_to_one_prompt() -> None:
    usage = Usage(num_prompt_tokens=2, num_generation_tokens=2)
    alone = generation(logprobs=(-0.5, -0.5), usage=usage)
    assert alone.answers == (alone,)
    further = Completion(token_ids=(7,), text="b", finish_reason="length", stop_reason=None)
    first, second = replace(alone, others=(further,)).answers
    assert (first.token_ids, first.text) == (alone.token_ids, alone.text)
    assert (second.prompt_id, second.prompt_token_ids) == (alone.prompt_id, alone.prompt_token_ids)
    assert (second.token_ids, second.text, second.finish_reason) == ((7,), "b", "length")
    # What was told of the first one alone is not told of this.
    assert (second.logprobs, second.usage, second.step_tokens) == (None, None, ())
    assert second.others == ()


def test_a_token_without_a_logprob_is_not_an_answer_without_any() -> None:
    data = generation(logprobs=(-0.5, None)).to_json()
    assert Generation.from_json(json.loads(json.dumps(data))).logprobs == (-0.5, None)
    assert Generation.from_json({**data, "logprobs": []}).logprobs == ()
