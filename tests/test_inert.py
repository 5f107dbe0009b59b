"""A project that does not use the plugin gets nothing of it: no line, no import, no engine."""

from __future__ import annotations

import sys

import pytest

HEAVY = (
    "vllm",
    "torch",
    "scipy",
    "numpy",
    "jinja2",
    "jsonschema",
    "sqlglot",
    "pytest_specdec.gate",
    "pytest_specdec.profile_gate",
    "pytest_specdec.session",
    "pytest_specdec.stored_entries",
    "pytest_specdec.suite",
    "pytest_specdec.workload",
    "pytest_specdec.engines.pair",
)
TEST = f"""
import sys

def test_plain():
    assert "pytest_specdec.plugin" in sys.modules
    assert [name for name in {HEAVY} if name in sys.modules] == []
"""


@pytest.mark.parametrize("arguments", [(), ("-v",), ("-rA",), ("--collect-only",)])
def test_a_project_without_workloads(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    # Other plugins of the environment may import what they like.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_plain=TEST)
    pytester.makefile(".jsonl", data='{"id": "not a workload"}')
    with_us = pytester.runpytest_subprocess("-p", "pytest_specdec.plugin", *arguments)
    without = pytester.runpytest_subprocess(*arguments, "--deselect=test_plain.py::test_plain")
    assert with_us.ret == 0, with_us.stdout.str()
    assert "specdec" not in with_us.stdout.str().replace(TEST, "")
    assert with_us.stderr.str() == without.stderr.str() == ""
    if not arguments:
        with_us.assert_outcomes(passed=1)
    assert not (pytester.path / ".specdec").exists()


def test_a_project_without_workloads_under_pytest_xdist(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xdist")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_plain=TEST)
    result = pytester.runpytest_subprocess(
        *("-p", "pytest_specdec.plugin", "-p", "xdist.plugin", "-n1", "-v")
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["scheduling tests via LoadScheduling"])
    assert "specdec" not in result.stdout.str().replace(TEST, "")


def test_settings_alone_load_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_plain=TEST)
    pytester.makeini(
        "[pytest]\nspecdec_strict_baselines = true\nspecdec_inconclusive = warn\n"
        "specdec_record = recordings\n"
    )
    result = pytester.runpytest_subprocess(
        *("-p", "pytest_specdec.plugin", "--specdec-strict-baselines"),
        "--specdec-inconclusive=fail",
    )
    result.assert_outcomes(passed=1)
    assert "specdec" not in result.stdout.str().replace(TEST, "")
    assert not (pytester.path / "recordings").exists()


@pytest.mark.parametrize("option", ["--help", "--markers", "--version"])
def test_pytest_s_own_questions_load_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    program = (
        "import sys, pytest\n"
        f"code = pytest.main(['-p', 'pytest_specdec.plugin', {option!r}, '--specdec-gpu'][:3])\n"
        f"sys.exit(code or [name for name in {HEAVY} if name in sys.modules] or 0)\n"
    )
    result = pytester.run(sys.executable, "-c", program)
    assert result.ret == 0, result.stdout.str() + result.stderr.str()


def test_a_job_of_github_s_that_is_not_ours_loads_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    pytester.makepyfile(test_plain="def test_plain(): assert False")
    program = (
        "import sys, pytest\n"
        "code = pytest.main(['-p', 'pytest_specdec.plugin', '-q'])\n"
        f"sys.exit([name for name in {HEAVY} if name in sys.modules] or code - 1)\n"
    )
    result = pytester.run(sys.executable, "-c", program)
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert "::error" not in result.stdout.str()


def test_help_with_an_option_of_ours_needs_no_project(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--help", "--specdec-gpu")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*gate for speculative decoding in vLLM:"])
