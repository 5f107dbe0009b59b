"""A real pair of engines: what they say, count and time, what they refuse, and that they go on."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec.counters import DraftCounters, total
from pytest_specdec.engines.pair import EnginePair
from pytest_specdec.errors import RequestRefused
from pytest_specdec.generation import ROLES, Generation, Role, RunPair
from pytest_specdec.measurement import measure
from pytest_specdec.workload import Prompt, Workload
from tests.real.conftest import LOOP, MAX_MODEL_LEN, PROMPTS, Recorder, row, workload

NUM_SPECULATIVE_TOKENS = 4
GIB = 2**30


@pytest.fixture(scope="module", params=[1, 4])
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Workload:
    """The same prompts, one by one and all in flight."""
    rows = [row(name, content) for name, content in PROMPTS.items()]
    folder = tmp_path_factory.mktemp("workloads")
    return workload(folder, f"at-{request.param}", rows, concurrency=request.param)


@pytest.fixture(scope="module")
def runs(pair: EnginePair, loaded: Workload) -> RunPair:
    """Both engines' runs over it."""
    return pair.run(loaded)


def drafts_of(generation: Generation) -> DraftCounters:
    assert generation.drafts is not None
    return generation.drafts


def test_greedy_answers_are_identical(runs: RunPair) -> None:
    walks = [*runs.baseline.passes, *runs.speculative.passes]
    assert runs.order == ("baseline", "speculative", "speculative", "baseline")
    assert len(walks) == 4
    for walk in walks:
        assert [each.prompt_id for each in walk.generations] == list(PROMPTS)
        for first, other in zip(runs.baseline.generations, walk.generations, strict=True):
            assert other.prompt_token_ids == first.prompt_token_ids
            assert other.token_ids == first.token_ids
            assert other.text == first.text
            assert other.finish_reason == first.finish_reason


def test_every_answer_is_as_long_as_it_may_be_or_ends(runs: RunPair) -> None:
    for generation in runs.baseline.generations:
        assert 0 < len(generation.token_ids) <= 24
        assert generation.finish_reason in ("length", "stop")
        assert generation.finish_reason == "stop" or len(generation.token_ids) == 24
        assert generation.text.strip()


def test_the_speculative_engine_speculates_and_counts_by_the_laws(runs: RunPair) -> None:
    for walk in runs.speculative.passes:
        counted = walk.drafts
        assert counted is not None
        assert counted.num_drafts > 0
        assert 0 < counted.num_accepted_tokens < counted.num_draft_tokens
        assert counted.num_draft_tokens <= counted.num_drafts * NUM_SPECULATIVE_TOKENS
        assert counted.broken_laws() == ()
        per_pos = counted.num_accepted_tokens_per_pos
        assert len(per_pos) == NUM_SPECULATIVE_TOKENS
        assert all(earlier >= later for earlier, later in pairwise(per_pos))


def test_the_requests_drafts_sum_to_the_engine_s(runs: RunPair) -> None:
    for walk in runs.speculative.passes:
        assert total(drafts_of(each) for each in walk.generations) == walk.drafts


def test_tokens_are_accepted_tokens_and_steps(runs: RunPair) -> None:
    """Each step gives one token and those it accepted; only the last may be cut short."""
    for generation in runs.speculative.generations:
        made = generation.num_steps + drafts_of(generation).num_accepted_tokens
        cut = made - len(generation.token_ids)
        assert 0 <= cut <= NUM_SPECULATIVE_TOKENS
        assert drafts_of(generation).num_drafts < generation.num_steps


def test_the_baseline_engine_gives_one_token_a_step_and_counts_no_drafts(runs: RunPair) -> None:
    for walk in runs.baseline.passes:
        assert walk.drafts is None
        for generation in walk.generations:
            assert generation.drafts is None
            assert generation.num_steps == len(generation.token_ids)


def test_passes_repeat_themselves(runs: RunPair) -> None:
    first, second = runs.speculative.passes
    assert first.drafts == second.drafts
    assert first.num_steps == second.num_steps


def test_times_are_plausible(runs: RunPair) -> None:
    for walk in (*runs.baseline.passes, *runs.speculative.passes):
        for generation in walk.generations:
            assert 0 < generation.ttft_ms < walk.wall_s * 1000
            assert generation.tpot_ms is not None
            assert 0 < generation.tpot_ms < 2000
            decoded_ms = generation.tpot_ms * (len(generation.token_ids) - 1)
            assert generation.ttft_ms + decoded_ms <= walk.wall_s * 1000 * 1.01


def test_the_measurement_of_a_real_run(runs: RunPair, loaded: Workload) -> None:
    measured = measure(loaded, runs)
    assert measured.drafts_source == "request"
    assert measured.baseline.tokens_per_step == 1
    assert measured.tokens_per_step is not None
    assert measured.tokens_per_step > 1
    assert measured.mean_acceptance_length is not None
    # Steps without a draft are in the one and not in the other.
    assert 1 < measured.tokens_per_step < measured.mean_acceptance_length
    assert measured.speedup is not None


def test_each_engine_is_started_once_and_asked_once(
    pair: EnginePair, runs: RunPair, loaded: Workload, watch: Recorder
) -> None:
    told = len(watch.phases)
    assert pair.run(loaded) == runs
    assert len(watch.phases) == told
    assert pair.num_starts == {"baseline": 1, "speculative": 1}
    for role in ROLES:
        assert sum(phase == f"loading the {role} engine" for phase in watch.phases) == 1
    assert watch.phases.count("importing vLLM") == 1


def test_the_engines_are_configured_alike(pair: EnginePair, runs: RunPair) -> None:
    baseline, speculative = (pair.facts[role] for role in ROLES)
    assert baseline.config["model_config.max_model_len"] == MAX_MODEL_LEN
    assert baseline.config["model_config.dtype"] == "torch.float32"
    assert baseline.config["cache_config.num_gpu_blocks"] > 0
    for name in ("model_config.dtype", "model_config.max_model_len", "cache_config.block_size"):
        assert baseline.config[name] == speculative.config[name]
    assert baseline.versions == speculative.versions == pair.versions
    assert re.match(r"\d+\.\d+", str(pair.versions["vllm"]))
    assert 0 < baseline.load_s < 120


def test_what_the_engines_took(pair: EnginePair, runs: RunPair) -> None:
    cost = pair.cost()
    assert cost is not None
    for role, own in zip(ROLES, (cost.baseline, cost.speculative), strict=True):
        assert own.load_s == pair.facts[role].load_s
        # 135 million parameters of four bytes.
        assert own.weights_bytes is not None
        assert 134e6 < own.weights_bytes / 4 < 136e6
        assert (own.kv_cache_blocks, own.kv_cache_tokens) == (96, 96 * 32)
        assert own.peak_memory_bytes is not None
        assert own.weights_bytes < own.peak_memory_bytes < 8 * GIB
    assert (cost.draft_weights_bytes, cost.size_ratio) == (None, None)


def test_what_steps_cost(pair: EnginePair, tmp_path: Path) -> None:
    costs = pair.step_costs(workload(tmp_path, "alone", [row("count", PROMPTS["count"])]))
    assert costs is not None
    assert costs.draft_ratio == 0.0
    if costs.verification_ratio is None:  # this machine does other work
        assert "its passes scatter" in costs.notes[0]
    else:
        assert 0.3 < costs.verification_ratio < 15


def prompt(content: str, **fields: Any) -> Prompt:
    request = row("one", content, **fields)
    return Prompt(id=request.pop("id"), request=request, json_schema=None, sql=None, line=1)


def both(pair: EnginePair, *prompts: Prompt) -> list[tuple[Generation, Generation]]:
    """The prompts' answers, all in flight, by each engine."""
    passes = [pair.engine(role).generate(prompts, concurrency=len(prompts)) for role in ROLES]
    return list(zip(*(walk.generations for walk in passes), strict=True))


def test_finish_reasons(pair: EnginePair) -> None:
    count = PROMPTS["count"]
    answers = both(
        pair,
        prompt(count),
        prompt(count, stop=["4"], max_tokens=48),
        prompt(count, structured_outputs={"choice": ["one"]}),
    )
    for index, (reason, stop_reason) in enumerate(
        [("length", None), ("stop", "4"), ("stop", None)]
    ):
        for answer in answers[index]:
            assert (answer.finish_reason, answer.stop_reason) == (reason, stop_reason)
    for baseline, speculative in answers:
        assert baseline.token_ids == speculative.token_ids
        assert baseline.text == speculative.text
    by_length, by_string, _ = answers
    assert by_length[1].drafts is not None
    # The frontend ends these, and then nobody tells their drafts: unknown, which is not zero.
    assert by_string[1].drafts is None
    assert "3" in by_string[1].text
    assert "4" not in by_string[1].text


SCHEMA = {
    "type": "object",
    "properties": {
        "color": {"type": "string", "enum": ["red", "green", "blue"]},
        "numbers": {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3},
    },
    "required": ["color", "numbers"],
    "additionalProperties": False,
}
GRAMMAR = 'root ::= "SELECT " name " FROM " name ";"\nname ::= "a" | "b" | "cities"\n'


def is_of_schema(text: str) -> bool:
    value = json.loads(text)
    numbers = value["numbers"]
    return (
        value.keys() == {"color", "numbers"}
        and value["color"] in ("red", "green", "blue")
        and len(numbers) == 3
        and all(isinstance(each, int) for each in numbers)
    )


CONSTRAINTS: Mapping[str, tuple[Mapping[str, Any], Any]] = {
    "json_schema": (
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": SCHEMA},
            }
        },
        is_of_schema,
    ),
    "grammar": (
        {"structured_outputs": {"grammar": GRAMMAR}},
        re.compile(r"SELECT (a|b|cities) FROM (a|b|cities);").fullmatch,
    ),
    "regex": (
        {"structured_outputs": {"regex": r"[0-9]{4}-[0-9]{2}-[0-9]{2}"}},
        re.compile(r"\d{4}-\d\d-\d\d").fullmatch,
    ),
    "choice": ({"structured_outputs": {"choice": ["yes", "no"]}}, ("yes", "no").__contains__),
}


@pytest.fixture(scope="module")
def constrained(pair: EnginePair) -> Mapping[str, tuple[Generation, Generation]]:
    """Both engines' answers under every kind of constraint, all in flight at once."""
    asked = [
        prompt("Give a color and some numbers, or a date.", max_tokens=48, **fields)
        for fields, _ in CONSTRAINTS.values()
    ]
    return dict(zip(CONSTRAINTS, both(pair, *asked), strict=True))


@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_constraints_hold_on_both_engines(
    constrained: Mapping[str, tuple[Generation, Generation]], kind: str
) -> None:
    is_valid = CONSTRAINTS[kind][1]
    baseline, speculative = constrained[kind]
    for answer in (baseline, speculative):
        assert answer.finish_reason == "stop"
        assert is_valid(answer.text), answer.text
    assert baseline.token_ids == speculative.token_ids


def test_scores_of_a_greedy_answer(pair: EnginePair, runs: RunPair) -> None:
    answer = runs.baseline.generations[0]
    by_engine = [
        pair.engine(role).score(answer.prompt_token_ids, answer.token_ids) for role in ROLES
    ]
    for scores in by_engine:
        assert tuple(score.token_id for score in scores) == answer.token_ids
        for score in scores:
            assert math.isfinite(score.logprob)
            assert score.logprob <= 0
            # Greedy: no token is likelier than the one that was taken.
            assert score.logprob == score.argmax_logprob
            assert score.rank == 1
        assert "".join(score.text for score in scores[:-1]) in answer.text + scores[-1].text
    for ours, theirs in zip(*by_engine, strict=True):
        assert ours.logprob == pytest.approx(theirs.logprob, abs=1e-3)
        assert ours.argmax_token_id == theirs.argmax_token_id


def test_a_token_that_greedy_would_not_take(pair: EnginePair, runs: RunPair) -> None:
    answer = runs.baseline.generations[0]
    other = (answer.token_ids[0] + 1) % 40000
    (score,) = pair.engine("baseline").score(answer.prompt_token_ids, [other])
    assert score.token_id == other
    assert score.rank > 1
    assert score.logprob < score.argmax_logprob
    assert score.argmax_token_id == answer.token_ids[0]


def test_scoring_leaves_the_counters_alone(pair: EnginePair) -> None:
    """What it costs is not charged to the pass after it."""
    engine = pair.engine("speculative")
    alone = engine.generate([prompt(PROMPTS["repeat"])], concurrency=1)
    answer = alone.generations[0]
    engine.score(answer.prompt_token_ids, answer.token_ids)
    again = engine.generate([prompt(PROMPTS["repeat"])], concurrency=1)
    assert again.drafts == alone.drafts == answer.drafts


def words_that_leave(pair: EnginePair, num_tokens: int) -> str:
    """A text that leaves so many tokens of the context window; a word is a token."""
    short = pair.engine("baseline").generate([prompt("word " * 480, max_tokens=1)], concurrency=1)
    length = len(short.generations[0].prompt_token_ids)
    return "word " * (480 + MAX_MODEL_LEN - length - num_tokens)


def test_an_answer_to_the_window_s_end_is_scored_but_for_its_last_token(
    pair: EnginePair, tmp_path: Path
) -> None:
    words = words_that_leave(pair, 5)
    asked = row("own", words, max_tokens=64, ignore_eos=True, temperature=1)
    runs = pair.run(workload(tmp_path, "filled", [asked], gated=[]))
    for role, scored in zip(ROLES, runs.sample_scores, strict=True):
        answer = (runs.baseline if role == "baseline" else runs.speculative).generations[0]
        assert len(answer.prompt_token_ids) + len(answer.token_ids) == MAX_MODEL_LEN
        assert (scored.role, len(scored.scores)) == (role, 4)
        assert tuple(score.token_id for score in scored.scores) == answer.token_ids[:-1]


TOO_LONG = "word " * MAX_MODEL_LEN


@pytest.mark.parametrize(
    ("role", "bad", "told"),
    [
        ("baseline", prompt(TOO_LONG), r"maximum.*length"),
        ("speculative", prompt(TOO_LONG), r"maximum.*length"),
        ("speculative", prompt(LOOP, min_p=0.5, temperature=1), "min_p"),
        ("baseline", prompt(LOOP, top_p=7), "top_p"),
        ("baseline", prompt(LOOP, structured_outputs={"grammar": "root ::= ("}), "grammar"),
    ],
    ids=["too-long-baseline", "too-long-speculative", "min_p", "top_p", "grammar"],
)
def test_a_refused_request_names_the_reason_and_harms_nothing(
    pair: EnginePair, role: Role, bad: Prompt, told: str
) -> None:
    engine, good = pair.engine(role), prompt(PROMPTS["repeat"], max_tokens=8)
    before = engine.generate([good], concurrency=1)
    with pytest.raises(RequestRefused) as caught:
        # The bad one comes while the good ones are at work.
        engine.generate([good, good, bad, good], concurrency=3)
    assert type(caught.value) is RequestRefused
    message = str(caught.value)
    assert message.startswith(f"the {role} engine of profile `smollm2-ngram` refused a request: ")
    assert re.search(told, message, re.IGNORECASE), message
    after = engine.generate([good], concurrency=1)
    assert after.generations[0].token_ids == before.generations[0].token_ids
    # None of the refused pass's requests is still at work beside it.
    assert after.generations[0].num_steps == before.generations[0].num_steps
    assert after.drafts == before.drafts


def test_the_context_window_s_end_is_an_end(pair: EnginePair) -> None:
    words = words_that_leave(pair, 5)
    asked = prompt(words, max_tokens=64, ignore_eos=True)
    ((baseline, speculative),) = both(pair, asked)
    assert baseline.token_ids == speculative.token_ids
    assert baseline.finish_reason == speculative.finish_reason == "length"
    assert len(baseline.prompt_token_ids) + len(baseline.token_ids) == MAX_MODEL_LEN
