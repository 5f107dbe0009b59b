"""The regex and choice checks: what is valid, and what each defect is called."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_specdec.checks.structured_outputs import check_choice, check_regex
from pytest_specdec.workload import Prompt
from tests.said import answer

CODE = r"[A-Z]{2}-\d{3}"
WORDS = ["yes", "yes please", "no"]


def prompt(**outputs: Any) -> Prompt:
    request = {"max_tokens": 7, "structured_outputs": outputs}
    return Prompt(id="one", request=request, json_schema=None, sql=None, line=1)


@pytest.mark.parametrize(
    ("regex", "text", "finish_reason"),
    [
        (CODE, "AB-123", "stop"),
        (CODE, "AB-123", "length"),  # whole at `max_tokens`
        (r"a|ab", "ab", "stop"),  # not the first alternative: a whole match is looked for
        (r"^\d+$", "12", "stop"),
        (r"\s{2}", " \n", "stop"),  # blank as the regex wants it
        (r"(yes)?", "", "stop"),
        (r"```\w+```", "```x```", "stop"),
        (r"\{\{\w+\}\}", "{{x}}", "stop"),
        (r"<\|\w+\|>", "<|end|>", "stop"),
        (r"a\s*", "a" + " " * 40, "stop"),
    ],
)
def test_a_whole_match_is_valid(regex: str, text: str, finish_reason: str) -> None:
    assert check_regex(prompt(regex=regex), answer(text, finish_reason)) is None


@pytest.mark.parametrize(
    ("regex", "text", "finish_reason", "kind"),
    [
        (CODE, "ab-123", "stop", "regex mismatch"),
        (CODE, "AB-12", "stop", "regex mismatch"),
        (CODE, "AB-12", "length", "truncated"),
        (CODE, " AB-123", "stop", "regex mismatch"),
        (CODE, "AB-1234", "stop", "text after the end"),
        (CODE, "AB-123\n", "stop", "text after the end"),
        (r"\d+$", "12\n", "stop", "text after the end"),
        (r"\d*", "x", "stop", "regex mismatch"),  # nothing is no whole match worth telling
        (CODE, "AB-123 and", "length", "truncated"),
        (CODE, "", "stop", "empty"),
        (CODE, " \n", "stop", "empty"),
        (CODE, "AB-" + " " * 32, "length", "whitespace runaway"),
        (r"a\s*", "a" + " " * 40, "length", "whitespace runaway"),
        (CODE, "AB-123<|im_end|>", "stop", "special token"),
        (CODE, "```\nAB-123\n```", "stop", "fenced"),
        (CODE, "AB-123", "abort", "aborted"),
        (CODE, "AB-123", "error", "grammar violation"),
        (r"a.b", "a\nb", "stop", "regex mismatch"),
    ],
)
def test_defects_of_a_regex(regex: str, text: str, finish_reason: str, kind: str) -> None:
    finding = check_regex(prompt(regex=regex), answer(text, finish_reason))
    assert finding is not None
    assert (finding.kind, finding.prompt_id) == (kind, "one")


@pytest.mark.parametrize(("text", "finish_reason"), [("no", "stop"), ("yes", "length")])
def test_a_choice_is_valid(text: str, finish_reason: str) -> None:
    assert check_choice(prompt(choice=WORDS), answer(text, finish_reason)) is None


def test_a_choice_may_be_blank() -> None:
    assert check_choice(prompt(choice=[" ", "x"]), answer(" ")) is None


@pytest.mark.parametrize(
    ("text", "finish_reason", "kind"),
    [
        ("maybe", "stop", "not a choice"),
        ("Yes", "stop", "not a choice"),
        ("ye", "length", "truncated"),
        ("ye", "stop", "not a choice"),
        ("no.", "stop", "text after the end"),
        ("", "stop", "empty"),
        ("no<|im_end|>", "stop", "special token"),
        ("```no```", "stop", "fenced"),
        ("no" + "\n" * 32, "length", "whitespace runaway"),
        ("no", "abort", "aborted"),
        ("no", "error", "grammar violation"),
    ],
)
def test_defects_of_a_choice(text: str, finish_reason: str, kind: str) -> None:
    finding = check_choice(prompt(choice=WORDS), answer(text, finish_reason))
    assert finding is not None
    assert (finding.kind, finding.prompt_id) == (kind, "one")


@pytest.mark.parametrize(
    ("outputs", "text", "failure"),
    [
        (
            {"regex": CODE},
            "ab-123",
            "regex mismatch: `one`\n"
            "  the answer does not match the whole of the regex\n"
            "  regex: '[A-Z]{2}-\\\\d{3}'\n"
            "  answer: 'ab-123'",
        ),
        (
            {"regex": CODE},
            "AB-123, or",
            "text after the end: `one`\n"
            "  a whole match of the regex ends before character 6; after it: ', or'\n"
            "  regex: '[A-Z]{2}-\\\\d{3}'",
        ),
        (
            {"regex": "a.b"},
            "a\nb",
            "regex mismatch: `one`\n"
            "  the answer does not match the whole of the regex\n"
            "  regex: 'a.b'\n"
            "  answer: 'a\\nb'\n"
            "hint: `.` matches a newline in xgrammar and not in Python's `re`: write `[^\\n]`",
        ),
        (
            {"choice": WORDS},
            "maybe",
            "not a choice: `one`\n"
            "  the answer is none of the 3 choices: 'maybe'\n"
            '  choices: ["yes", "yes please", "no"]',
        ),
        (
            {"choice": WORDS},
            "yes please!",
            "text after the end: `one`\n"
            "  the choice 'yes please' ends before character 10; after it: '!'\n"
            '  choices: ["yes", "yes please", "no"]',
        ),
    ],
)
def test_failure_texts(outputs: dict[str, Any], text: str, failure: str) -> None:
    check = check_regex if "regex" in outputs else check_choice
    assert str(check(prompt(**outputs), answer(text))) == failure


@pytest.mark.parametrize("check", [check_regex, check_choice])
def test_a_prompt_without_the_constraint_is_a_mistake_of_the_caller(check: Any) -> None:
    with pytest.raises(ValueError, match=r"prompt `one` declares no `structured_outputs\."):
        check(prompt(grammar="root ::= [a]"), answer("a"))
