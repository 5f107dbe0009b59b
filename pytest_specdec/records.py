"""Records: text of about any length to stand before a question, as what was retrieved for it would.

Lines of orders, customers and parts, made of our own words; no two prompts have the same ones. A
prompt's records for more tokens begin with those for fewer, so that along a sweep only the length
differs. Floor 0: imports nothing from the package.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

CHARS_PER_TOKEN = 2.1
"""Of such lines under SmolLM2's tokenizer, to which each digit is a token. Another one makes fewer
or more of them; how many a prompt has is counted by the engine and reported."""
HALF_A_LINE = 25

NAMES = (
    "Almer",
    "Brandt",
    "Corso",
    "Duval",
    "Eklund",
    "Ferrow",
    "Grange",
    "Holt",
    "Imbert",
    "Jansen",
)
TOWNS = ("Porto", "Lyon", "Graz", "Turku", "Ghent", "Cork", "Brno", "Malmo", "Siena", "Utrecht")
PARTS = (
    "hinge",
    "valve",
    "bracket",
    "gasket",
    "spindle",
    "washer",
    "pulley",
    "filter",
    "relay",
    "clamp",
)
STATES = ("open", "packed", "shipped", "returned", "paid")
MATERIALS = ("steel", "brass", "copper", "rubber", "nylon")


def records(prompt_id: str, num_tokens: int) -> str:
    """Whole lines of about that many tokens, always the same for one prompt; at least one."""
    num_chars, lines = 0, []
    draw = random.Random(f"records of {prompt_id}")  # noqa: S311  # no secret
    for line in _lines(draw):
        num_chars += len(line) + 1
        lines.append(line)
        if num_chars >= num_tokens * CHARS_PER_TOKEN - HALF_A_LINE:
            break
    return "\n".join(lines)


def _lines(draw: random.Random) -> Iterator[str]:
    """Without end."""
    kinds: tuple[Callable[[random.Random], str], ...] = (_order, _customer, _part)
    while True:
        yield draw.choice(kinds)(draw)


def _order(draw: random.Random) -> str:
    return (
        f"order {draw.randrange(10_000, 100_000)}: customer {draw.choice(NAMES)}, "
        f"{draw.randrange(1, 100)} x {draw.choice(PARTS)}, total {_price(draw)}, "
        f"{draw.choice(STATES)}"
    )


def _customer(draw: random.Random) -> str:
    return (
        f"customer {draw.randrange(1_000, 10_000)}: {draw.choice(NAMES)} of {draw.choice(TOWNS)}, "
        f"since {draw.randrange(1990, 2025)}, {draw.randrange(2, 60)} orders"
    )


def _part(draw: random.Random) -> str:
    return (
        f"part {draw.choice('ABCDEFGH')}{draw.randrange(100, 1_000)}: {draw.choice(MATERIALS)} "
        f"{draw.choice(PARTS)}, {draw.randrange(2, 400)} in stock, {_price(draw)} each"
    )


def _price(draw: random.Random) -> str:
    return f"{draw.randrange(1, 2_000)}.{draw.randrange(0, 100):02}"
