"""Known defects: what is broken in some versions of vLLM, and must be seen for as long as it is.

    [[profiles.NAME.known_defects]]
    check = "distribution"
    workload = "sampled"
    versions = ">=0.27.1,<=0.32.0"
    reason = "the CPU sampler divides by memory that nobody wrote"
    kind = ["distribution"]

A finding that it names does not fail the build, and every report shows it. When the check finds
nothing any more, that fails: the entry has had its day. Floor 1; pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from pytest_specdec.errors import ConfigError, did_you_mean
from pytest_specdec.table import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDefect:
    """One defect of some versions of vLLM, as one check of one workload sees it."""

    check: str = field(metadata={"help": "the check that finds it, by its name in test names"})
    workload: str = field(metadata={"help": "the workload that shows it"})
    versions: str = field(
        metadata={"help": 'the versions of vLLM that have it, such as ">=0.27.1,<=0.32.0"'}
    )
    reason: str = field(metadata={"help": "what is broken, and where that is known from"})
    about: tuple[str, ...] = field(
        default=(),
        metadata={"help": "the prompts, or circumstances, that may show it; empty: any"},
    )
    kind: tuple[str, ...] = field(
        default=(),
        metadata={
            "help": "the kinds of finding that it explains, or of a metric the verdicts; empty: any"
        },
    )

    def is_of(self, vllm_version: str | None) -> bool:
        """Whether that vLLM has it; a version that is no version has nothing."""
        try:
            version = Version(vllm_version or "")
        except InvalidVersion:
            return False
        return SpecifierSet(self.versions).contains(version, prereleases=True)

    def concerns(self, workload: str, check: str, about: str | None) -> bool:
        """Whether a check of that workload may show it."""
        is_about = not self.about or about in self.about
        return (self.workload, self.check) == (workload, check) and is_about

    def explains(self, kind: str) -> bool:
        """Whether what such a check found is this defect."""
        return not self.kind or kind in self.kind

    def __str__(self) -> str:
        return f"known defect of vLLM {self.versions}: {self.reason}"


def check_known_defects(place: Place, defects: Collection[KnownDefect]) -> None:
    """Refuses versions that cannot be read, and two entries for one check of one workload.

    Raises:
        ConfigError: naming file, key and entry.
    """
    seen: set[tuple[str, str]] = set()
    for number, each in enumerate(defects):
        here = place.at(str(number))
        try:
            SpecifierSet(each.versions)
        except InvalidSpecifier:
            raise _wrong_versions(here, each) from None
        if (key := (each.workload, each.check)) in seen:
            raise here.error(
                f"is a second entry for `{each.check}` of `{each.workload}`",
                hint="name all of its prompts in `about` of one entry",
            )
        seen.add(key)


def check_known_names(
    place: Place, defects: Collection[KnownDefect], *, known: Mapping[str, Collection[str]]
) -> None:
    """Refuses an entry of a check that there is not, or of a kind that its check does not find: it
    would never be seen.

    Args:
        known: by check, what it can find.

    Raises:
        ConfigError: naming file, key and entry.
    """
    for number, each in enumerate(defects):
        here = place.at(str(number))
        if each.check not in known:
            hint = did_you_mean(each.check, known)
            raise here.at("check").error(f"is no check: {each.check!r}", hint=hint)
        for kind in each.kind:
            if kind not in known[each.check]:
                hint = did_you_mean(kind, known[each.check])
                raise here.at("kind").error(f"is no kind of `{each.check}`: {kind!r}", hint=hint)


def untested(
    defects: Collection[KnownDefect], tests: Collection[tuple[str, str, str | None]]
) -> tuple[KnownDefect, ...]:
    """Those that no test is about; nobody would miss them.

    Args:
        tests: workload, check, and prompt or circumstance of each.
    """
    return tuple(each for each in defects if not any(each.concerns(*test) for test in tests))


def unseen(defect: KnownDefect, vllm_version: str | None) -> str:
    """The failure text where a defect that is known does not show itself."""
    kinds = " nor ".join(f"`{kind}`" for kind in defect.kind)
    finds = f"no {kinds}" if kinds else "nothing"
    return (
        f"unexpected pass: `{defect.check}` of `{defect.workload}` finds {finds} on vLLM "
        f"{vllm_version}\n{defect}\n"
        "hint: if it is mended there, end the entry's `versions` before this one in "
        "`known_defects` of the profile, or delete the entry"
    )


def _wrong_versions(place: Place, defect: KnownDefect) -> ConfigError:
    return place.at("versions").error(
        f"names no versions: {defect.versions!r}",
        hint='write bounds as pip does, such as ">=0.27.1,<=0.32.0"',
    )
