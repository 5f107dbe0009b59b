from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_specdec.e_process import (
    ALTERNATIVES,
    Alternative,
    ArgmaxTilted,
    Contaminated,
    Tempered,
    e_process,
)
from pytest_specdec.generation import TokenScore
from tests.scored import Model, normalized, score, scores_of

MODEL = Model(seed=1)
LEVEL = 0.1
LOG_THRESHOLD = -math.log(LEVEL)

WEIGHTS = st.lists(
    st.one_of(st.floats(1e-12, 1), st.sampled_from([0.25, 0.5, 1.0])), min_size=1, max_size=30
)


def expected_ratio(
    alternative: Alternative, probabilities: list[float], *, num_top: int = 16
) -> float:
    """The mean of the ratio over tokens drawn from the distribution itself."""
    scores = scores_of(probabilities, num_top=num_top)
    return math.fsum(
        probability * math.exp(alternative.log_ratio(each, len(probabilities)))
        for probability, each in zip(probabilities, scores, strict=True)
        if probability
    )


@settings(deadline=None)
@given(WEIGHTS, st.sampled_from(ALTERNATIVES))
def test_each_ratio_has_a_mean_of_one(weights: list[float], alternative: Alternative) -> None:
    if not isinstance(alternative, Tempered):
        assert expected_ratio(alternative, normalized(weights)) == pytest.approx(1, abs=1e-9)


@settings(deadline=None)
@given(WEIGHTS, st.floats(0.3, 3), st.integers(1, 16))
def test_a_tempered_ratio_has_a_mean_of_one_whatever_is_tied(
    weights: list[float], temperature: float, num_top: int
) -> None:
    probabilities = normalized(weights)
    falling = sorted(probabilities, reverse=True)[:num_top]
    rest = 1 - math.fsum(each for each in falling if each > falling[-1])
    mean = expected_ratio(Tempered(temperature=temperature), probabilities, num_top=num_top)
    if rest >= 2e-6:
        assert mean == pytest.approx(1, abs=1e-6)
    else:
        assert mean < 1 + 1e-6, "a small rest is taken for more, never for less"


@pytest.mark.parametrize("alternative", ALTERNATIVES, ids=str)
def test_impossible_tokens_do_not_raise_the_mean(alternative: Alternative) -> None:
    assert expected_ratio(alternative, [0.7, 0.3, 0.0, 0.0]) <= 1 + 1e-9
    assert expected_ratio(alternative, [1.0, 0.0]) <= 1 + 1e-9


HALF, TENTH = math.log(0.5), math.log(0.1)
CELLS = (math.log(0.5), math.log(0.3), math.log(0.1))


@pytest.mark.parametrize(
    ("alternative", "given_score", "ratio"),
    [
        (Contaminated(share=0.2), score(TENTH), 0.8 + 0.2 / 10 / 0.1),
        (Contaminated(share=0.2), score(math.log(1e-6)), 0.8 + 0.2 / 10 / 1e-6),
        (ArgmaxTilted(factor=2), score(HALF, argmax_logprob=HALF, is_argmax=True), 2 / 1.5),
        (ArgmaxTilted(factor=2), score(TENTH, argmax_logprob=HALF), 1 / 1.5),
        (ArgmaxTilted(factor=0.25), score(HALF, argmax_logprob=HALF, is_argmax=True), 0.25 / 0.625),
        # A tie with the argmax is not the argmax.
        (ArgmaxTilted(factor=4), score(HALF, argmax_logprob=HALF), 1 / 2.5),
        # Cells of 0.5, 0.3 and the rest of 0.2, whose tokens have 0.025: 0.25, 0.09, 0.005.
        (Tempered(temperature=0.5), score(HALF, top_logprobs=CELLS), 0.5 / 0.345),
        (Tempered(temperature=0.5), score(TENTH, top_logprobs=CELLS), 0.025 / 0.345),
        (Tempered(temperature=0.5), score(-9.0, top_logprobs=CELLS), 0.025 / 0.345),
        (Tempered(temperature=0.5), score(HALF, top_logprobs=(HALF, HALF)), 1),
        (Tempered(temperature=0.5), score(-9.0), 1),
    ],
)
def test_ratios(alternative: Alternative, given_score: TokenScore, ratio: float) -> None:
    assert alternative.log_ratio(given_score, 10) == pytest.approx(math.log(ratio))


def test_nothing_is_evidence_of_nothing() -> None:
    found = e_process([], vocab_size=10, log_threshold=1)
    assert (found.num_tokens, found.log_e_max, found.at) == (0, 0, 0)
    assert found.crossed_at is None
    assert found.supported is None


def test_an_impossible_token_is_all_the_evidence_there_can_be() -> None:
    scores = [score(-1.0), score(-math.inf), score(-1.0)]
    found = e_process(scores, vocab_size=10, log_threshold=1e9)
    assert (found.num_tokens, found.log_e_max, found.at, found.crossed_at) == (3, math.inf, 2, 2)
    assert isinstance(found.supported, Contaminated)


@pytest.mark.parametrize("logprob", [-1e300, -800.0, -0.0, 1e-7])
@pytest.mark.parametrize("argmax_logprob", [-1e300, -0.0, 1e-7])
@pytest.mark.parametrize("top_logprobs", [(), (0.0,), (1e-7, -math.inf), (-0.7, -0.7, -0.7)])
@pytest.mark.parametrize("vocab_size", [1, 50_000])
def test_any_score_gives_a_number(
    logprob: float, argmax_logprob: float, top_logprobs: tuple[float, ...], vocab_size: int
) -> None:
    one = score(logprob, argmax_logprob=argmax_logprob, top_logprobs=top_logprobs)
    for alternative in ALTERNATIVES:
        assert math.isfinite(alternative.log_ratio(one, vocab_size))


def test_a_vocabulary_of_one_token_says_nothing() -> None:
    (only,) = scores_of([1.0])
    found = e_process([only] * 100, vocab_size=1, log_threshold=1)
    assert found.log_e_max == pytest.approx(0, abs=1e-4)


def test_where_it_was_highest_is_kept() -> None:
    """Evidence that later tokens take back is evidence still."""
    improbable, usual = score(-20.0), score(-1.0, argmax_logprob=-1.0, is_argmax=True)
    scores = [usual, improbable, *[usual] * 500]
    found = e_process(
        scores, vocab_size=10, log_threshold=2, alternatives=[Contaminated(share=0.2)]
    )
    assert (found.num_tokens, found.at, found.crossed_at) == (502, 2, 2)
    again = e_process(scores[:2], vocab_size=10, log_threshold=2, alternatives=ALTERNATIVES[2:3])
    assert again.log_e_max == found.log_e_max


def test_weights_are_equal() -> None:
    one = score(-20.0)
    log_ratio = Contaminated(share=0.2).log_ratio(one, 10)
    pair: list[Alternative] = [Contaminated(share=0.2), Tempered(temperature=2)]
    found = e_process([one], vocab_size=10, log_threshold=1, alternatives=pair)
    assert found.log_e_max == pytest.approx(math.log((math.exp(log_ratio) + 1) / 2))


def test_false_alarms_are_no_more_than_promised() -> None:
    """At any of its tokens: what is counted is whether a session ever alarms."""
    num_sessions = 300
    alarms = sum(
        e_process(
            MODEL.session(seed, 200), vocab_size=Model.SIZE, log_threshold=LOG_THRESHOLD
        ).crossed_at
        is not None
        for seed in range(num_sessions)
    )
    allowed = num_sessions * LEVEL
    assert alarms <= allowed + 2 * math.sqrt(allowed * (1 - LEVEL))
    assert alarms > 0, "a test that never alarms would pass whatever it did"


@pytest.mark.parametrize(
    ("drawn", "kind", "meaning"),
    [
        (MODEL.contaminated(0.2), Contaminated, "all but impossible"),
        (MODEL.argmax_tilted(3), ArgmaxTilted, "too often the likeliest token"),
        (MODEL.argmax_tilted(0.3), ArgmaxTilted, "too seldom the likeliest token"),
        (MODEL.tempered(0.6), Tempered, "temperature were lower"),
        (MODEL.tempered(1.6), Tempered, "temperature were higher"),
    ],
)
def test_faults_are_found_and_named(drawn: list[list[float]], kind: type, meaning: str) -> None:
    found = e_process(
        MODEL.session(5, 1000, drawn=drawn), vocab_size=Model.SIZE, log_threshold=math.log(100)
    )
    assert found.crossed_at is not None
    assert found.supported is not None
    assert isinstance(found.supported, kind)
    assert meaning in found.supported.meaning
