"""Known defects: which vLLM has one, which test may show it, and which entries are refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pytest_specdec.errors import ConfigError
from pytest_specdec.known_defects import (
    KnownDefect,
    check_known_defects,
    check_known_names,
    unseen,
    untested,
)
from pytest_specdec.table import Place

PLACE = Place("specdec.toml", ("profiles", "small", "known_defects"))


def defect(check: str = "counts", workload: str = "code", **facts: Any) -> KnownDefect:
    return KnownDefect(
        check=check,
        workload=workload,
        versions=facts.pop("versions", ">=0.27.1,<=0.32.0"),
        reason="why",
        **facts,
    )


@pytest.mark.parametrize(
    ("versions", "version", "has_it"),
    [
        (">=0.27.1,<=0.32.0", "0.27.0", False),
        (">=0.27.1,<=0.32.0", "0.27.1", True),
        (">=0.27.1,<=0.32.0", "0.32.0", True),
        (">=0.27.1,<=0.32.0", "0.32.1", False),
        # A build for the CPU is of that version.
        (">=0.27.1,<=0.32.0", "0.32.0+cpu", True),
        ("==0.32.0", "0.32.0+cpu", True),
        (">0.32.0", "0.32.0+cpu", False),
        (">=0.27.1", "0.32.0rc2", True),
        ("<0.33", "0.33.0.dev4+gabc", False),
        ("==0.32.*", "0.32.7", True),
        ("", "0.1", True),
        (">=0.27.1", "dev", False),
        (">=0.27.1", "", False),
        (">=0.27.1", None, False),
    ],
)
def test_versions_are_read_as_pip_does(versions: str, version: str | None, has_it: bool) -> None:
    assert defect(versions=versions).is_of(version) is has_it


@pytest.mark.parametrize(
    ("about", "subject", "concerns"),
    [
        ((), ("code", "counts", None), True),
        ((), ("code", "counts", "one"), True),
        ((), ("code", "drift", None), False),
        ((), ("story", "counts", None), False),
        (("one", "two"), ("code", "counts", "two"), True),
        (("one",), ("code", "counts", "two"), False),
        (("one",), ("code", "counts", None), False),
    ],
)
def test_what_may_show_it(
    about: tuple[str, ...], subject: tuple[str, str, str | None], concerns: bool
) -> None:
    assert defect(about=about).concerns(*subject) is concerns


@pytest.mark.parametrize(
    ("kind", "found", "explains"),
    [
        ((), "miscounted", True),
        (("miscounted",), "miscounted", True),
        (("miscounted", "lost"), "lost", True),
        (("miscounted",), "lost", False),
    ],
)
def test_the_kinds_that_it_explains(kind: tuple[str, ...], found: str, explains: bool) -> None:
    assert defect(kind=kind).explains(found) is explains


def test_in_words() -> None:
    assert str(defect()) == "known defect of vLLM >=0.27.1,<=0.32.0: why"


def test_what_is_said_where_it_is_not_seen() -> None:
    assert unseen(defect(), "0.30.0").splitlines() == [
        "unexpected pass: `counts` of `code` finds nothing on vLLM 0.30.0",
        "known defect of vLLM >=0.27.1,<=0.32.0: why",
        "hint: if it is mended there, end the entry's `versions` before this one in "
        "`known_defects` of the profile, or delete the entry",
    ]


@pytest.mark.parametrize(
    ("kind", "finds"),
    [
        ((), "nothing"),
        (("lost",), "no `lost`"),
        (("lost", "miscounted"), "no `lost` nor `miscounted`"),
    ],
)
def test_what_is_not_seen_is_named(kind: tuple[str, ...], finds: str) -> None:
    told = unseen(defect(kind=kind), "0.30.0")
    assert told.startswith(f"unexpected pass: `counts` of `code` finds {finds} on vLLM 0.30.0\n")


def test_sound_entries() -> None:
    check_known_defects(PLACE, ())
    check_known_defects(
        PLACE, (defect(), defect("drift"), defect(workload="story"), defect("json", versions=""))
    )


@pytest.mark.parametrize(
    ("defects", "told"),
    [
        (
            (defect(), defect(about=("one",))),
            "`profiles.small.known_defects.1` is a second entry for `counts` of `code`\n"
            "hint: name all of its prompts in `about` of one entry",
        ),
        *(
            (
                (defect("drift"), defect(versions=versions)),
                f"`profiles.small.known_defects.1.versions` names no versions: {versions!r}\n"
                'hint: write bounds as pip does, such as ">=0.27.1,<=0.32.0"',
            )
            for versions in ("0.32", ">=0.27.1 <=0.32.0", "all", ">=")
        ),
    ],
)
def test_entries_that_are_refused(defects: tuple[KnownDefect, ...], told: str) -> None:
    with pytest.raises(ConfigError, match=f"^`specdec.toml`: {re.escape(told)}$"):
        check_known_defects(PLACE, defects)


def test_a_check_that_there_is_not_is_refused() -> None:
    known = {"counts": ("miscounted",), "drift": ("acceptance drifts",)}
    check_known_names(PLACE, (defect(), defect("drift")), known=known)
    told = "`profiles.small.known_defects.1.check` is no check: 'dritf'\nhint: did you mean `drift`"
    with pytest.raises(ConfigError, match=f"^`specdec.toml`: {re.escape(told)}"):
        check_known_names(PLACE, (defect(), defect("dritf")), known=known)


def test_a_kind_that_its_check_does_not_find_is_refused() -> None:
    known = {"counts": ("miscounted", "lost"), "drift": ("acceptance drifts",)}
    sound = defect(kind=("miscounted", "lost"))
    check_known_names(PLACE, (sound,), known=known)
    told = (
        "`profiles.small.known_defects.1.kind` is no kind of `counts`: 'miscount'\n"
        "hint: did you mean `miscounted`?"
    )
    with pytest.raises(ConfigError, match=f"^`specdec.toml`: {re.escape(told)}"):
        check_known_names(PLACE, (sound, defect(kind=("lost", "miscount"))), known=known)
    with pytest.raises(ConfigError, match="is no kind of `counts`: 'acceptance drifts'"):
        check_known_names(PLACE, (defect(kind=("acceptance drifts",)),), known=known)


def test_entries_that_no_test_is_about() -> None:
    tests = (("code", "counts", None), ("code", "json", "one"), ("story", "json", "one"))
    tested = (defect(), defect("json", about=("two", "one")), defect("json", workload="story"))
    idle = (defect("drift"), defect("json", about=("two",)), defect(workload="story"))
    assert untested((*tested, *idle), tests) == idle
    assert untested(tested, ()) == tested
