"""Imports go down or sideways between floors, never up; `worker.py` stands alone."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_specdec

PACKAGE = Path(pytest_specdec.__file__).parent
FLOORS = {
    0: "conditions counters errors expectations generation json_keywords json_schemas json_text "
    "records request_fields sql_tables sweep sweep_reading table whole_file workload",
    1: "engines engines.asides engines.asked engines.cost engines.costing engines.draft_alone "
    "engines.loads engines.pair engines.passes engines.peak_memory engines.pipe engines.process "
    "engines.protocol engines.recorded engines.step_costing engines.step_costs engines.taken "
    "engines.worker_process hardware imports imports.aiperf imports.bench_json "
    "imports.bench_sweep imports.bench_text imports.document imports.fields imports.formats "
    "imports.golden imports.guidellm imports.imported imports.log_windows "
    "imports.measurements imports.offline imports.per_request imports.prometheus "
    "imports.scrape imports.server_log imports.session_report known_defects leases "
    "model_files model_fit model_weights observer profile recording recording_file recording_lines "
    "worth_it_settings",
    2: "checks checks.acceptance checks.again checks.answer_text checks.applied "
    "checks.circumstance checks.conservation checks.drift checks.each_answer checks.effect "
    "checks.evidence checks.finding checks.honoured checks.honoured_content "
    "checks.honoured_length checks.honoured_stop checks.identity checks.json_schema "
    "checks.liveness checks.logprobs checks.refused checks.replay checks.sql checks.sql_names "
    "checks.sql_places checks.sql_rules checks.sql_statements checks.sql_text "
    "checks.structured_outputs checks.triage checks.validity measurement prompt_speedup "
    "speedup trail witness",
    3: "assessment baseline_store baseline_update catalogue comparison e_process expected "
    "explain family floors judge_acceptance judge_distribution judge_speedup kinds looks "
    "best_way break_even expected_gain gains where_it_gains workload_answer "
    "speedup_looks statistics stored_baseline tripwires verdict worth_it",
    4: "report report.action_benchmark report.annotations report.benchmark_entries "
    "report.charts report.charts_worth_it report.comparison report.divergences "
    "report.excerpt report.facts report.figures report.flat report.html report.json_file "
    "report.json_workload report.json_worth_it report.markdown report.markdown_parts "
    "report.markdown_worth_it report.measurements report.page report.page_workload "
    "report.page_worth_it report.properties report.property_names report.saved "
    "report.summary report.told report.told_worth_it report.worth_it_lines",
    5: "benchmarks cli compare fixtures gate gate_item github header junit marked options "
    "own_tests plugin point_answers point_gate point_items point_report profile_gate "
    "profile_report profile_verdicts progress pytest_reports recorder report_command "
    "report_files scheduling session stored_entries stored_numbers suite workers",
}
FLOOR_OF = {name: floor for floor, names in FLOORS.items() for name in names.split()}
# The package itself holds a version number and is on no floor; the worker imports none of it.
WORKER = "engines.worker"
ON_NO_FLOOR = {"", WORKER}
ENGINE_PACKAGES = {"vllm", "torch", "transformers", "huggingface_hub"}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported(tree: ast.AST) -> Iterator[str]:
    """Every module an import may load, in functions and under TYPE_CHECKING too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not read here"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def of_the_package(names: Iterator[str]) -> set[str]:
    """Those that are modules of ours; what is imported out of a module is not."""
    inner = {name.removeprefix("pytest_specdec").lstrip(".") for name in names if is_ours(name)}
    return inner & MODULES.keys()


def is_ours(name: str) -> bool:
    return name.partition(".")[0] == "pytest_specdec"


def parsed(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


def test_every_module_is_on_a_floor() -> None:
    assert MODULES.keys() == FLOOR_OF.keys() | ON_NO_FLOOR


@pytest.mark.parametrize("name", sorted(FLOOR_OF))
def test_no_import_goes_up(name: str) -> None:
    upward = {
        other: FLOOR_OF.get(other)
        for other in of_the_package(imported(parsed(name))) - {""}
        if FLOOR_OF.get(other, 9) > FLOOR_OF[name]
    }
    assert upward == {}


@pytest.mark.parametrize("name", sorted(FLOOR_OF))
def test_a_docstring_says_the_floor(name: str) -> None:
    docstring = ast.get_docstring(parsed(name)) or ""
    assert re.findall(r"Floor (\d)", docstring) == [str(FLOOR_OF[name])]


@pytest.mark.parametrize("name", sorted(MODULES.keys() - {WORKER}))
def test_only_the_worker_imports_the_engine(name: str) -> None:
    roots = {each.partition(".")[0] for each in imported(parsed(name))}
    assert roots & ENGINE_PACKAGES == set()


def test_the_worker_needs_nothing_but_python_until_it_is_asked() -> None:
    tree = parsed(WORKER)
    at_the_top = ast.Module(
        body=[node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)],
        type_ignores=[],
    )
    assert {name.partition(".")[0] for name in imported(at_the_top)} <= sys.stdlib_module_names
    assert not any(is_ours(name) for name in imported(tree))


def test_the_reading_of_imports_sees_all_kinds() -> None:
    tree = ast.parse(
        "import pytest_specdec.gate\n"
        "from pytest_specdec import family\n"
        "from pytest_specdec.engines.pair import EnginePair\n"
        "if TYPE_CHECKING:\n    from pytest_specdec.verdict import Verdict\n"
        "def f():\n    import pytest_specdec.report.summary as s\n"
        "import json, vllm.config\n"
    )
    assert {"vllm.config", "json"} <= set(imported(tree))
    assert of_the_package(imported(tree)) == {
        "",
        "gate",
        "family",
        "engines.pair",
        "verdict",
        "report.summary",
    }
