"""A finding of each kind that makes a structured answer invalid, as the checks tell it.

Each is a pair of answers to a prompt like those of `suites/structured/`, judged as in a session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pytest_specdec.checks.finding import Finding
from pytest_specdec.checks.validity import checks_for, judge_validity
from pytest_specdec.generation import Generation
from pytest_specdec.json_schemas import JsonSchema
from pytest_specdec.workload import Prompt, SqlExpectation
from tests.said import generation

BOOKING_SCHEMA: JsonSchema = {
    "type": "object",
    "properties": {
        "guest": {"type": "string"},
        "room": {"type": "integer", "minimum": 1, "maximum": 99},
        "nights": {"type": "integer", "minimum": 1},
    },
    "required": ["guest", "room", "nights"],
    "additionalProperties": False,
}
BOOKING = '{"guest": "Mara", "room": 47, "nights": 5}'
TRAIN = "Lisbon 17:25 P6"
ORDER = "The order was sent."
BOATS = "SELECT name FROM boats WHERE harbour = 'Bergen' AND built > 1980;"
NEW_BOAT = "INSERT INTO boats (name, harbour) VALUES ('Alba', 'Bergen');"


def prompt(
    prompt_id: str,
    *,
    held_by: Mapping[str, object] | None = None,
    schema: JsonSchema | None = None,
    sql: SqlExpectation | None = None,
) -> Prompt:
    """One that is held to a constraint, or a free one."""
    request = {"max_tokens": 64, **(held_by or {})}
    return Prompt(id=prompt_id, request=request, json_schema=schema, sql=sql, line=2)


def boats(dialect: str, statement: str = "select") -> Prompt:
    """A free prompt for one statement over a table of boats."""
    ddl = "CREATE TABLE boats (name TEXT, harbour TEXT, length_m INTEGER, built INTEGER);"
    sql = SqlExpectation(dialect=dialect, ddl=ddl, statement=statement)
    return prompt(f"boats-{dialect}", sql=sql)


HELD_BOOKING = prompt(
    "booking-mara",
    held_by={
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "booking", "schema": BOOKING_SCHEMA},
        }
    },
    schema=BOOKING_SCHEMA,
)
FREE_BOOKING = prompt("booking-mara", schema=BOOKING_SCHEMA)
HELD_TRAIN = prompt(
    "train-lisbon",
    held_by={"structured_outputs": {"regex": "[A-Z][a-z]{2,9} [0-2][0-9]:[0-5][0-9] P[1-9]"}},
)
HELD_ORDER = prompt(
    "order-parcel",
    held_by={"structured_outputs": {"choice": ["The order is open.", ORDER]}},
)


def said(text: str, finish_reason: str = "stop", num_tokens: int = 15) -> Generation:
    return generation(token_ids=range(num_tokens), text=text, finish_reason=finish_reason)


def found(
    asked: Prompt, *, speculative: Generation, baseline: Generation | str = BOOKING
) -> Finding:
    """What the check of that prompt finds in the two answers."""
    (check,) = checks_for(asked).values()
    finding = judge_validity(
        asked,
        baseline=said(baseline) if isinstance(baseline, str) else baseline,
        speculative=speculative,
        check=check,
    )
    assert finding is not None
    return finding


def example(
    asked: Prompt,
    text: str,
    finish_reason: str = "stop",
    num_tokens: int = 15,
    *,
    baseline: Generation | str = BOOKING,
) -> Callable[[], Finding]:
    """Made when it is asked for: some of the validators take seconds to import."""
    speculative = said(text, finish_reason, num_tokens)
    return partial(found, asked, speculative=speculative, baseline=baseline)


UNENDING = '{"guest": "Mara, who booked for her sister, who booked for her cousin, who'

EXAMPLES: dict[str, Callable[[], Finding]] = {
    "grammar violation": example(HELD_BOOKING, '{"guest": "Mara", "room": 47', "error", 11),
    "engine error": example(FREE_BOOKING, '{"guest": "Mara", "ro', "error", 8),
    "aborted": example(HELD_BOOKING, '{"guest": "Ma', "abort", 5),
    "whitespace runaway": example(HELD_BOOKING, '{"guest": "Mara",' + " \n" * 28, "length", 64),
    "empty": example(HELD_TRAIN, "", "stop", 1, baseline=TRAIN),
    "special token": example(HELD_TRAIN, "Lisbon 17:25 P<|im_end|>", baseline=TRAIN),
    "fenced": example(FREE_BOOKING, f"```json\n{BOOKING}\n```"),
    "truncated": example(HELD_BOOKING, UNENDING, "length", 64, baseline=said(UNENDING, "length")),
    "doubled braces": example(HELD_BOOKING, "{" + BOOKING),
    "text before the start": example(FREE_BOOKING, f"Here is the booking:\n{BOOKING}"),
    "text after the end": example(HELD_BOOKING, BOOKING + ', "nights": 5}'),
    "invalid JSON": example(HELD_BOOKING, BOOKING.replace("47", "")),
    "schema violation": example(HELD_BOOKING, BOOKING.replace("47", "147")),
    "regex mismatch": example(HELD_TRAIN, "Lisbon 17.25 P6", baseline=TRAIN),
    "not a choice": example(HELD_ORDER, "The order was open.", baseline=ORDER),
    "invalid SQL": example(
        boats("postgres"),
        "SELECT name FROM boats WHERE (harbour = 'Bergen' AND built > 1980;",
        baseline=BOATS,
    ),
    "not a statement": example(boats("postgres"), "Boats in Bergen", baseline=BOATS),
    "wrong statement": example(
        boats("postgres"), "DELETE FROM boats WHERE built < 1980;", baseline=BOATS
    ),
    "more than one statement": example(
        boats("postgres"), f"{BOATS} SELECT harbour FROM boats;", baseline=BOATS
    ),
    "empty projection": example(
        boats("mysql"), "SELECT FROM boats WHERE built > 1980;", baseline=BOATS
    ),
    "unknown name": example(
        boats("postgres"), "SELECT name FROM boats WHERE port = 'Bergen';", baseline=BOATS
    ),
    "repeated column": example(
        boats("postgres", "insert"),
        "INSERT INTO boats (name, harbour, name) VALUES ('Alba', 'Bergen', 'Alba');",
        baseline=NEW_BOAT,
    ),
    "wrong number of values": example(
        boats("postgres", "insert"),
        "INSERT INTO boats (name, harbour) VALUES ('Alba', 'Bergen', 1998);",
        baseline=NEW_BOAT,
    ),
    "missing GROUP BY": example(
        boats("postgres"), "SELECT harbour, COUNT(*) FROM boats;", baseline=BOATS
    ),
    "refused by sqlite": example(
        boats("sqlite"), "SELECT name FROM boats WHERE YEAR(built) > 1980;", baseline=BOATS
    ),
    "refused by duckdb": example(
        boats("duckdb"), "SELECT harbour, name FROM boats GROUP BY harbour;", baseline=BOATS
    ),
}
