"""Scrapes of `/metrics`: sums over engines, growth between two, and what no one server can say."""

from __future__ import annotations

import pytest

from pytest_specdec.errors import ImportFileError
from pytest_specdec.imports.imported import ImportedMeasurement
from pytest_specdec.imports.prometheus import SINCE_START, V0_NOTE, subtract
from tests.imports.reading import document, read, refused

NAMES = {
    "drafts": "vllm:spec_decode_num_drafts",
    "draft_tokens": "vllm:spec_decode_num_draft_tokens",
    "accepted": "vllm:spec_decode_num_accepted_tokens",
}
PER_POS = "vllm:spec_decode_num_accepted_tokens_per_pos"


def counter(name: str, value: object, *, engine: int = 0, labels: str = "") -> str:
    return f'{name}_total{{engine="{engine}",model_name="m"{labels}}} {value}\n'


def scrape(
    *, engine: int = 0, created: float = 5.0, per_pos: tuple[object, ...] = (), **counts: object
) -> str:
    """One engine's counters, each with the time that it was made."""
    text = ""
    for name, value in counts.items():
        full = NAMES[name]
        text += f"# HELP {full}_total Counts.\n# TYPE {full}_total counter\n"
        text += counter(full, value, engine=engine)
        text += f"# TYPE {full}_created gauge\n"
        text += f'{full}_created{{engine="{engine}",model_name="m"}} {created}\n'
    for position, value in enumerate(per_pos):
        text += counter(PER_POS, value, engine=engine, labels=f',position="{position}"')
    return text


EARLY = scrape(drafts=50, draft_tokens=100, accepted=60, per_pos=(40, 20))
LATE = scrape(drafts=150, draft_tokens=300, accepted=190, per_pos=(120, 70))


def grown(late: str, early: str) -> ImportedMeasurement:
    (measurement,) = subtract(
        document(late, name="after.prom"), document(early, name="before.prom")
    )
    return measurement


def not_grown(late: str, early: str) -> str:
    with pytest.raises(ImportFileError) as caught:
        grown(late, early)
    return str(caught.value)


def test_one_scrape_is_all_since_the_start() -> None:
    run = read(document(EARLY + counter("vllm:generation_tokens", "1200.0"), name="a.prom"))
    assert (run.label, run.notes) == ("a", (SINCE_START,))
    assert (run.num_drafts, run.num_draft_tokens, run.num_accepted_tokens) == (50, 100, 60)
    assert (run.acceptance_rate, run.mean_acceptance_length) == (0.6, 2.2)
    assert run.num_accepted_tokens_per_pos == (40, 20)
    assert run.acceptance_rate_per_pos == (0.8, 0.4)
    assert run.num_output_tokens == 1200


def test_engines_are_summed_and_positions_are_not() -> None:
    both = EARLY + scrape(engine=1, drafts=10, draft_tokens=20, accepted=15, per_pos=(9, 6))
    run = read(document(both))
    assert (run.num_drafts, run.num_accepted_tokens) == (60, 75)
    assert run.num_accepted_tokens_per_pos == (49, 26)


def test_growth_between_two_scrapes() -> None:
    run = grown(LATE, EARLY)
    assert (run.label, run.notes) == ("after", ())
    assert (run.num_drafts, run.num_draft_tokens, run.num_accepted_tokens) == (100, 200, 130)
    assert run.num_accepted_tokens_per_pos == (80, 50)
    assert run.mean_acceptance_length == 2.3


def test_nothing_between_two_scrapes() -> None:
    run = grown(EARLY, EARLY)
    assert (run.num_drafts, run.acceptance_rate, run.mean_acceptance_length) == (0, None, None)


def test_scientific_notation() -> None:
    text = scrape(drafts="6.491797e+06", draft_tokens="6.491797e+06", created=1.77692439403224e9)
    run = read(document(text))
    assert (run.num_drafts, run.num_draft_tokens) == (6_491_797, 6_491_797)
    assert (run.num_accepted_tokens, run.acceptance_rate) == (None, None)


def test_drafts_alone() -> None:
    text = "".join(scrape(engine=engine, drafts=20 + engine) for engine in range(8))
    run = read(document(text))
    assert (run.num_drafts, run.num_draft_tokens, run.mean_acceptance_length) == (188, None, None)


def test_the_v0_engine_is_noted() -> None:
    text = scrape(draft_tokens=100, accepted=60)
    run = read(document(text + counter("vllm:spec_decode_num_emitted_tokens", 80)))
    assert V0_NOTE in run.notes


def test_a_scrape_without_speculation() -> None:
    message = refused(document(counter("vllm:generation_tokens", "120000.0")))
    assert message.startswith("`run.txt`: holds no counter `vllm:spec_decode_*`\nhint: ")


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (EARLY.rstrip("\n"), "is cut off: the last line has no end"),
        (EARLY + 'vllm:spec_decode_num_drafts_total{engine="\n', "is no text of Prometheus"),
        (EARLY + "vllm:spec_decode_num_drafts_total{a b}\n", "is no text of Prometheus"),
        (EARLY + EARLY, 'num_drafts{engine="0",model_name="m"}` stands there twice'),
        (scrape(drafts="NaN"), "is not a finite number: nan"),
        (scrape(drafts="+Inf"), "is not a finite number: inf"),
        (scrape(drafts=-4), 'num_drafts{engine="0",model_name="m"}` is below 0: -4\n'),
        (scrape(drafts=1.5), "is not a whole number: 1.5"),
        (scrape(drafts="1e30"), "is too large: 1e+30"),
        (
            EARLY + scrape(engine=1, drafts=10, draft_tokens=20),
            'num_accepted_tokens{engine="1",model_name="m"}`, while other counters',
        ),
        (
            EARLY + scrape(engine=1, drafts=9, draft_tokens=18, accepted=9, per_pos=(9,)),
            'per_pos{engine="1",model_name="m",position="1"}`, while other counters',
        ),
        (
            scrape(drafts=9, draft_tokens=18, accepted=9) + counter(PER_POS, 9),
            "has no whole number as `position`: ''",
        ),
        (
            scrape(drafts=9) + counter(PER_POS, 9, labels=',position="1"'),
            "lacks position 0",
        ),
        (scrape(drafts=50, draft_tokens=100, accepted=101), "acceptance rate is 1.01"),
    ],
)
def test_what_is_no_whole_scrape(text: str, fact: str) -> None:
    message = refused(document(text))
    assert message.startswith("`run.txt`: ")
    assert fact in message


@pytest.mark.parametrize(
    ("late", "early", "fact"),
    [
        (EARLY, LATE, "fell from 150 to 50: the server was restarted in between, or the scrapes"),
        (LATE.replace("} 5.0", "} 6.0"), EARLY, "was made anew in between"),
        (LATE, scrape(drafts=50), "`before.prom`: lacks `vllm:spec_decode_num_draft_tokens{"),
        (scrape(drafts=150), EARLY, "`after.prom`: lacks `vllm:spec_decode_num_draft_tokens{"),
        (
            LATE + scrape(engine=1, drafts=9, draft_tokens=18, accepted=9, per_pos=(9, 0)),
            EARLY,
            '`before.prom`: lacks `vllm:spec_decode_num_drafts{engine="1",model_name="m"}`',
        ),
        (LATE, counter("vllm:generation_tokens", 1), "`before.prom`: holds no counter"),
    ],
)
def test_scrapes_that_are_not_of_one_life(late: str, early: str, fact: str) -> None:
    message = not_grown(late, early)
    assert fact in message
    assert "\nhint: " in message
