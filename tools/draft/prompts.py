"""Prompts that a draft model is trained on the target's answers to: made by a seeded generator.

They are of the kinds of work that speculation is used for: SQL over given tables, JSON by example,
fields copied out of a text, small edits of code; and some open writing, so that the draft
stays a language model. Names, tables and questions are drawn from word lists of our own; none of
the suites' prompts is among them, which a test holds.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Messages = list[dict[str, str]]

WORDS = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
FIRST: list[str] = WORDS["first"]
LAST: list[str] = WORDS["last"]
GOODS: list[str] = WORDS["goods"]
TABLES: dict[str, list[str]] = WORDS["tables"]
# What a column of that name may hold.
CELLS: dict[str, list[str]] = {
    **dict.fromkeys(("city", "origin", "destination", "site"), WORDS["cities"]),
    "color": WORDS["colors"],
    "name": [f"{first} {last}" for first in FIRST for last in LAST[:3]],
    "title": WORDS["goods"],
    "customer": WORDS["firms"],
    **{name: WORDS[name] for name in ("status", "currency", "department", "country", "carrier")},
}


def prompts(seed: int) -> Iterator[Messages]:
    """Chats without end, each ending with a user's turn; the same ones for the same seed."""
    rng = random.Random(seed)
    kinds: list[tuple[Callable[[random.Random], Messages], float]] = [
        (_select, 3.0),
        (_insert, 3.0),
        (_record, 3.0),
        (_extraction, 2.5),
        (_edit, 2.0),
        (_open, 1.0),
    ]
    makers, weights = zip(*kinds, strict=True)
    while True:
        yield rng.choices(makers, weights)[0](rng)


def examples(seed: int) -> Iterator[Messages]:
    """Chats without end, each ending with an answer: the worked examples of prompts that have some,
    without the question that only the target can answer."""
    return (each[:-1] for each in prompts(seed) if len(each) > 2)


def _chat(system: str | None, *turns: tuple[str, str], last: str) -> Messages:
    said: Messages = [] if system is None else [{"role": "system", "content": system}]
    for user, assistant in turns:
        said += [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]
    return [*said, {"role": "user", "content": last}]


def _ddl(table: str) -> str:
    return f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, {', '.join(TABLES[table])});"


def _columns(table: str, kind: str) -> list[str]:
    return [each.split()[0] for each in TABLES[table] if each.endswith(kind)]


def _value(rng: random.Random, column: str) -> str:
    if column.endswith("_on"):
        return f"2025-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    return rng.choice(CELLS.get(column, GOODS))


def _question(rng: random.Random, table: str) -> tuple[str, str]:
    """A question about one table, and the query that answers it."""
    texts, numbers = _columns(table, "TEXT"), _columns(table, "INTEGER") + _columns(table, "REAL")
    column, number = rng.choice(texts), rng.choice(numbers or ["id"])
    shown = rng.sample(texts, min(2, len(texts)))
    value, limit = _value(rng, column), rng.randint(2, 12)
    plural = f"{' and '.join(shown)} of {table}"
    return rng.choice(
        [
            (
                f"{plural.capitalize()} with {column} {value}.",
                f"SELECT {', '.join(shown)} FROM {table} WHERE {column} = '{value}';",
            ),
            (
                f"How many {table} have {column} {value}?",
                f"SELECT COUNT(*) FROM {table} WHERE {column} = '{value}';",
            ),
            (
                f"The {limit} {table} with the largest {number}.",
                f"SELECT {', '.join([*shown, number])} FROM {table} ORDER BY {number} DESC"
                f" LIMIT {limit};",
            ),
            (
                f"All {table} with {number} above {limit * 10}, by {number}.",
                f"SELECT * FROM {table} WHERE {number} > {limit * 10} ORDER BY {number};",
            ),
            (
                f"The number of {table} for each {column}.",
                f"SELECT {column}, COUNT(*) FROM {table} GROUP BY {column};",
            ),
            (
                f"The average {number} of {table} by {column}.",
                f"SELECT {column}, AVG({number}) FROM {table} GROUP BY {column};",
            ),
        ]
    )


def _select(rng: random.Random) -> Messages:
    tables = rng.sample(sorted(TABLES), rng.randint(1, 3))
    system = rng.choice(
        [
            "Write one SQLite query for the question. Reply with SQL only.",
            "You write SQL for SQLite. Answer with one query and nothing else.",
        ]
    )
    turns = [_question(rng, rng.choice(tables)) for _ in range(rng.randint(1, 2))]
    last, _ = _question(rng, rng.choice(tables))
    return _chat("\n".join([system, *map(_ddl, tables)]), *turns, last=last)


def _row(rng: random.Random, table: str) -> tuple[str, str]:
    """A row as text, and the statement that stores it."""
    columns, told, values = [], [], []
    for each in TABLES[table]:
        column, kind = each.split()
        value = _cell(rng, each)
        columns.append(column)
        told.append(f"{column} {value}")
        values.append(f"'{value}'" if kind == "TEXT" else value)
    statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(values)});"
    return ", ".join(told), statement


def _insert(rng: random.Random) -> Messages:
    table = rng.choice(sorted(TABLES))
    system = f"Write one SQLite INSERT statement for the row. Reply with SQL only.\n{_ddl(table)}"
    row = rng.choice([_row, _rows])
    turns = [row(rng, table) for _ in range(rng.randint(1, 2))]
    return _chat(system, *turns, last=row(rng, table)[0])


def _rows(rng: random.Random, table: str) -> tuple[str, str]:
    """Two rows as lines, and the statement that stores both."""
    kinds = ["id INTEGER", *TABLES[table]]
    first = rng.randint(1, 400)
    lines, tuples = [], []
    for number in (first, first + 1):
        values = [str(number), *(_cell(rng, each) for each in TABLES[table])]
        lines.append(", ".join(values))
        quoted = [
            f"'{value}'" if kind.endswith("TEXT") else value
            for value, kind in zip(values, kinds, strict=True)
        ]
        tuples.append(f"({', '.join(quoted)})")
    columns = ", ".join(kind.split()[0] for kind in kinds)
    statement = f"INSERT INTO {table} ({columns}) VALUES {', '.join(tuples)};"
    return "\n".join([f"{table}:", *lines]), statement


def _cell(rng: random.Random, column: str) -> str:
    name, kind = column.split()
    if kind == "TEXT":
        return _value(rng, name)
    return str(rng.randint(1, 400)) if kind == "INTEGER" else f"{rng.uniform(1, 400):.2f}"


def _record(rng: random.Random) -> Messages:
    make = rng.choice([_ticket, _order, _reading, _meeting, _person])
    turns = [make(rng) for _ in range(rng.randint(1, 2))]
    system = "You reply with one JSON object and nothing else."
    return _chat(system, *turns, last=make(rng)[0])


def _json(**fields: Any) -> str:
    return json.dumps(fields)


def _ticket(rng: random.Random) -> tuple[str, str]:
    trouble = rng.choice(WORDS["troubles"])
    words = [word.strip(".").lower() for word in trouble.split() if len(word) > 4]
    category = rng.choice(["hardware", "software", "network", "billing"])
    priority = rng.choice(["low", "normal", "high"])
    answer = _json(
        subject=trouble[4:-1].capitalize(), category=category, priority=priority, tags=words[:2]
    )
    return f"Write a support ticket. {trouble}", answer


def _order(rng: random.Random) -> tuple[str, str]:
    number, name = f"ORD-{rng.randint(2000, 9999)}", f"{rng.choice(FIRST)} {rng.choice(LAST)}"
    items = [
        {"sku": f"{rng.choice('ABCDEFG')}{rng.choice('KLMNP')}-{rng.randint(100, 999)}",
         "quantity": rng.randint(1, 20)} for _ in range(2)
    ]  # fmt: skip
    is_express = rng.random() < 0.5
    listed = " and ".join(f"{each['quantity']} of {each['sku']}" for each in items)
    asked = f"Order {number} for {name}: {listed}, {'express' if is_express else 'no express'}."
    return (
        f"Create an order. {asked}",
        _json(order_id=number, customer=name, items=items, express=is_express),
    )


def _reading(rng: random.Random) -> tuple[str, str]:
    sensor = (
        f"{rng.choice(['attic', 'garage', 'pool', 'tank', 'shed', 'hall'])}-{rng.randint(1, 30):02}"
    )
    unit, status = rng.choice(["celsius", "percent", "hpa"]), rng.choice(["ok", "warning", "alarm"])
    middle = rng.randint(10, 900)
    readings = [middle + rng.randint(-2, 2) for _ in range(4)]
    return (
        f"Make a sensor record. Sensor {sensor}, {unit}, four readings near {middle}, "
        f"status {status}.",
        _json(sensor=sensor, unit=unit, readings=readings, status=status),
    )


def _meeting(rng: random.Random) -> tuple[str, str]:
    title = rng.choice(["Budget review", "Design talk", "Staff lunch", "Site visit", "Code review"])
    date = f"2025-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    start, minutes = (
        f"{rng.randint(8, 18):02}:{rng.choice(['00', '15', '30', '45'])}",
        rng.choice([15, 30, 45, 60]),
    )
    people = rng.sample(FIRST, 2)
    return (
        f"Plan a calendar event. {title} on {date} at {start} for {minutes} minutes with "
        f"{people[0]} and {people[1]}.",
        _json(title=title, date=date, start=start, minutes=minutes, attendees=people),
    )


def _person(rng: random.Random) -> tuple[str, str]:
    first, last, city = rng.choice(FIRST), rng.choice(LAST), rng.choice(WORDS["cities"])
    age = rng.randint(18, 80)
    return (
        f"Write a person record. {first} {last}, {age}, lives in {city}.",
        _json(name=f"{first} {last}", age=age, city=city, active=rng.random() < 0.5),
    )


def _extraction(rng: random.Random) -> Messages:
    make = rng.choice([_invoice, _log_line, _article, _signature])
    system = "Extract the fields from the text. Reply with one JSON object and nothing else."
    turns = [make(rng) for _ in range(rng.randint(1, 2))]
    return _chat(system, *turns, last=make(rng)[0])


def _invoice(rng: random.Random) -> tuple[str, str]:
    number, firm = f"INV-{rng.randint(10000, 99999)}", rng.choice(WORDS["firms"])
    total, currency = f"{rng.uniform(5, 900):.2f}", rng.choice(["EUR", "USD", "GBP"])
    due = f"2025-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    return (
        f"Invoice {number} from {firm}. Please pay {total} {currency} by {due}.",
        _json(number=number, vendor=firm, due=due, total=total, currency=currency),
    )


def _log_line(rng: random.Random) -> tuple[str, str]:
    time = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
    level, event = rng.choice(["INFO", "WARN", "ERROR"]), rng.choice(WORDS["events"])
    service = f"{rng.choice(WORDS['services'])}-{rng.choice(['worker', 'api', 'node'])}"
    return (
        f"{time} {level} {service}: {event}",
        _json(time=time, level=level, service=service, message=event),
    )


def _article(rng: random.Random) -> tuple[str, str]:
    name, color = rng.choice(WORDS["goods"]).capitalize(), rng.choice(WORDS["colors"])
    number = f"{''.join(rng.choices('ABCDEFGHKLMNPRST', k=3))}{rng.randint(1000, 9999)}"
    price, stock = f"{rng.uniform(3, 200):.2f}", rng.randint(1, 900)
    return (
        f"{name}, color {color}, article {number}, costs {price}, {stock} in stock.",
        _json(name=name, color=color, article=number, price=price, stock=stock),
    )


def _signature(rng: random.Random) -> tuple[str, str]:
    first, last, firm = rng.choice(FIRST), rng.choice(LAST), rng.choice(WORDS["firms"])
    mail = f"{first}.{last}@{firm.lower().replace(' ', '-')}.com".lower()
    phone = f"+{rng.randint(30, 60)} 555 {rng.randint(1000, 1999)}"
    greeting = rng.choice(["Best wishes", "Yours", "Regards", "Many thanks", "Kind regards"])
    return (
        f"{greeting}, {first} {last}, {firm}, {mail}, {phone}",
        _json(name=f"{first} {last}", company=firm, email=mail, phone=phone),
    )


def _function(rng: random.Random) -> tuple[str, str, str]:
    """Code, with a name in it and another one for it."""
    noun, other = rng.sample(WORDS["nouns"], 2)
    one, two, three = rng.sample(WORDS["fields"], 3)
    code = rng.choice(
        [
            f"class {noun.capitalize()}:\n    def __init__(self, {one}, {two}):\n"
            f"        self.{one} = {one}\n        self.{two} = {two}\n\n"
            f'    def describe(self):\n        return str(self.{one}) + " " + str(self.{two})',
            f"def total_{one}({noun}s):\n    total = 0\n    for {noun} in {noun}s:\n"
            f"        total += {noun}.{one}\n    return total",
            f"def find_{noun}({noun}s, {one}):\n    for {noun} in {noun}s:\n"
            f"        if {noun}.{one} == {one}:\n            return {noun}\n    return None",
            f"def make_{noun}({one}, {two}, {three}):\n    if {two} <= 0:\n"
            f'        raise ValueError("bad {two}")\n    return {{"{one}": {one}, '
            f'"{two}": {two}, "{three}": {three}}}',
        ]
    )
    return code, noun, other


def _edit(rng: random.Random) -> Messages:
    def turn() -> tuple[str, str]:
        code, noun, other = _function(rng)
        changed = code.replace(noun.capitalize(), other.capitalize()).replace(noun, other)
        return (
            f"Rename `{noun}` to `{other}`.\n```python\n{code}\n```",
            f"```python\n{changed}\n```",
        )

    last, _ = turn()
    if rng.random() < 0.5:
        code, _, _ = _function(rng)
        wish = rng.choice(["Add type hints.", "Add a docstring.", "Add a comment to each line."])
        last = f"{wish}\n```python\n{code}\n```"
    system = "You edit Python code. Reply with the edited code only."
    return _chat(system, turn(), last=last)


def _open(rng: random.Random) -> Messages:
    noun, good, city = (
        rng.choice(WORDS["nouns"]),
        rng.choice(WORDS["goods"]),
        rng.choice(WORDS["cities"]),
    )
    return _chat(
        None,
        last=rng.choice(
            [
                f"Write a short story about a {noun} in {city}.",
                f"List five uses for a {good}.",
                f"Explain what a {noun} is to a child.",
                f"Describe a morning in {city}.",
                f"Write an email that asks for a {good}.",
            ]
        ),
    )
