"""One answer over the points of a profile and of its variants. Floor 5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_specdec.gains import worth_it
from pytest_specdec.point_report import PointsResult
from pytest_specdec.profile_report import ProfileResult
from pytest_specdec.report.facts import ProfileReport


def with_answers(results: Sequence[ProfileResult]) -> Iterator[ProfileResult]:
    """The results of profiles, each with the answer over it and its variants; those of other
    sessions as they are."""
    for result in results:
        own = result.points
        if own is None:
            yield result
        elif own.base_name is None:
            name = result.report.profile.name
            variants = [each for each in results if _base_name(each) == name]
            yield replace(result, report=_answered(result.report, own, variants))


def _base_name(result: ProfileResult) -> str | None:
    return None if result.points is None else result.points.base_name


def _answered(
    report: ProfileReport, own: PointsResult, variants: Sequence[ProfileResult]
) -> ProfileReport:
    points = [*own.points]
    not_run = dict(report.not_run)
    for each in variants:
        points += each.points.points if each.points is not None else ()
        # A variant is no profile of its own: what it could not run is told beside the profile's.
        not_run |= {f"{name} ({_name(each)})": why for name, why in each.report.not_run.items()}
    return replace(
        report,
        not_run=not_run,
        worth_it=worth_it(
            points,
            cost=own.cost,
            min_gain=report.profile.worth_it.min_gain,
            must_gain=own.must_gain,
        ),
    )


def _name(variant: ProfileResult) -> str:
    return variant.report.profile.name.partition("@")[2]
