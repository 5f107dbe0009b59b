"""The formats that can be imported, and which of them a file is, by its content. Floor 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pytest_specdec.errors import ImportFileError, did_you_mean
from pytest_specdec.imports import (
    aiperf,
    bench_json,
    bench_sweep,
    bench_text,
    golden,
    guidellm,
    measurements,
    offline,
    per_request,
    prometheus,
    server_log,
    session_report,
)
from pytest_specdec.imports.document import Document, read_document
from pytest_specdec.imports.imported import ImportedMeasurement

Measurements = tuple[ImportedMeasurement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format.

    Attributes:
        fits: whether a file is of it; looks no further than it must.
        read: the measurements in a file.
        subtract: those between two files, the later one first; `None` where a file is of one run.
    """

    name: str
    fits: Callable[[Document], bool]
    read: Callable[[Document], Measurements]
    subtract: Callable[[Document, Document], Measurements] | None = None


FORMATS = {
    each.name: each
    for each in (
        Format(name="vllm-bench-json", fits=bench_json.fits, read=bench_json.read),
        Format(name="vllm-bench-sweep", fits=bench_sweep.fits, read=bench_sweep.read),
        Format(name="vllm-bench-text", fits=bench_text.fits, read=bench_text.read),
        Format(name="vllm-log", fits=server_log.fits, read=server_log.read),
        Format(
            name="prometheus",
            fits=prometheus.fits,
            read=prometheus.read,
            subtract=prometheus.subtract,
        ),
        Format(name="per-request", fits=per_request.fits, read=per_request.read),
        Format(name="offline", fits=offline.fits, read=offline.read),
        Format(name="aiperf", fits=aiperf.fits_profile, read=aiperf.read_profile),
        Format(
            name="aiperf-server-metrics",
            fits=aiperf.fits_server_metrics,
            read=aiperf.read_server_metrics,
        ),
        Format(name="guidellm", fits=guidellm.fits, read=guidellm.read),
        Format(name="golden-acceptance", fits=golden.fits, read=golden.read),
        Format(name="measurements", fits=measurements.fits, read=measurements.read),
        Format(name="session-report", fits=session_report.fits, read=session_report.read),
    )
}


def import_file(
    path: Path, *, format_name: str | None = None, before: Path | None = None
) -> Measurements:
    """The measurements in a file.

    Args:
        format_name: of `FORMATS`; `None` to tell by the content.
        before: an earlier file of the same counters, to take off.

    Raises:
        ImportFileError: when they cannot be had, with the one reason.
    """
    document = read_document(path)
    known = format_of(document) if format_name is None else _named(format_name, document)
    if before is None:
        return known.read(document)
    if known.subtract is None:
        names = ", ".join(f"`{each.name}`" for each in FORMATS.values() if each.subtract)
        raise ImportFileError(
            f"`{path}` is `{known.name}`, from which nothing is to be taken off",
            hint=f"`--before` is for {names}",
        )
    return known.subtract(document, read_document(before))


def format_of(document: Document) -> Format:
    """The one format that fits."""
    fitting = [each for each in FORMATS.values() if each.fits(document)]
    if len(fitting) > 1:
        names = " or ".join(f"`{each.name}`" for each in fitting)
        raise ImportFileError(
            f"`{document.name}` may be {names}", hint="name one of them with `--format`"
        )
    if fitting:
        return fitting[0]
    if document.rows is None and document.seems_json:
        raise ImportFileError(
            f"`{document.name}` is no JSON, or is cut off: {document.json_error}",
            hint="did the tool that wrote it end before its time?",
        )
    raise ImportFileError(
        f"`{document.name}` holds no measurement in a known format",
        hint=f"known here: {', '.join(f'`{name}`' for name in FORMATS)}",
    )


def _named(name: str, document: Document) -> Format:
    if name not in FORMATS:
        raise ImportFileError(f"`{name}` is no format", hint=did_you_mean(name, FORMATS))
    if not FORMATS[name].fits(document):
        if document.rows is None and document.seems_json:
            return format_of(document)
        raise ImportFileError(
            f"`{document.name}` is not `{name}`",
            hint="`pytest-specdec import` tells a format by the content, if none is named",
        )
    return FORMATS[name]
