"""ProcessEngine with stand-ins for the worker: whatever it does, there is one clear error, in time,
and nothing is left behind. The last tests run the real worker with stand-ins for vLLM and torch."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_specdec.engines import process, worker_process
from pytest_specdec.engines.pipe import Pipe
from pytest_specdec.engines.process import ProcessEngine
from pytest_specdec.errors import (
    CircumstanceUnsupported,
    ConfigError,
    EngineDied,
    EngineError,
    EngineStartError,
    EngineTimeout,
    EngineUnavailable,
    RequestRefused,
    SpecdecError,
)
from pytest_specdec.profile import Profile
from pytest_specdec.workload import Prompt
from tests.engines.workers import group, group_ends, interpreter, profile

ROOT = Path(__file__).resolve().parents[2]
PROMPT = Prompt(
    id="one",
    request={"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1},
    json_schema=None,
    sql=None,
    line=1,
)
Start = Callable[..., ProcessEngine]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts an engine whose worker does the given; afterwards nothing of it may run.

    What a test patches stays patched until its engines are closed.
    """
    started: list[ProcessEngine] = []

    def start_one(
        body: str,
        *,
        python: Path | None = None,
        env: Mapping[str, str] | None = None,
        **times: float,
    ) -> ProcessEngine:
        engine = ProcessEngine(
            replace(profile(tmp_path, **times), env=env or {}),
            "baseline",
            python=python or interpreter(tmp_path, textwrap.dedent(body)),
            log_path=tmp_path / "logs" / "engine.log",
        )
        started.append(engine)
        return engine

    yield start_one
    for engine in started:
        engine.close()
        assert group_ends(engine.pid, within_s=2)


def generated(engine: ProcessEngine) -> list[int]:
    answers = engine.generate([PROMPT], concurrency=1).generations
    return [answer.token_ids[0] for answer in answers]


def loaded_and_generated(engine: ProcessEngine) -> None:
    engine.load()
    generated(engine)


def test_a_worker_that_works(start: Start) -> None:
    engine = start(
        "load(); take(); generate(); take(); reply(result=[]); take(); reply(result='/m')"
    )
    with pytest.raises(
        EngineStartError, match=r"^the baseline engine of profile `small` is not lo"
    ):
        _ = engine.facts
    facts = engine.load()
    assert (facts.load_s, facts.config, facts.versions["vllm"]) == (1.5, {"a": 1}, "1.2.3")
    assert engine.facts == facts
    assert generated(engine) == [7]
    assert engine.score([1], []) == ()
    assert engine.folder("m") == Path("/m")


GREETED = "greet(); take(); "
LOADED = "load(); take(); "


@pytest.mark.parametrize(
    ("stage", "does", "kind"),
    [
        ("importing vLLM", "", EngineUnavailable),
        ("loading", GREETED, EngineStartError),
        ("generating", LOADED, EngineDied),
    ],
)
@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ("sys.exit(3)", "exit status 3"),
        ("os._exit(0)", "exit status 0"),
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL; the system may be out of memory"),
        ("os.kill(os.getpid(), 11)", "killed by SIGSEGV"),
        ("os.kill(os.getpid(), 40)", "killed by signal 40"),
        ("raise RuntimeError('what happened')", "exit status 1"),
    ],
)
def test_a_worker_that_dies(
    start: Start, stage: str, does: str, kind: type[EngineError], ends: str, told: str
) -> None:
    engine = start(f"print('said before', flush=True); {does}{ends}")
    with pytest.raises(EngineError) as caught:
        loaded_and_generated(engine)
    assert type(caught.value) is kind
    first, second, third, *_ = str(caught.value).splitlines()
    assert first == f"the baseline engine of profile `small` died while {stage}: {told}"
    assert second == f"log: {engine.log_path}"
    assert third == "    said before"
    assert ("what happened" in str(caught.value)) is ("what happened" in ends)
    assert not group(engine.pid)


def test_a_worker_that_is_dead_when_it_is_greeted_is_told_of_when_it_is_asked(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = Pipe.send

    def late(pipe: Pipe, message: dict[str, object], *, silence_s: float) -> None:
        time.sleep(0.5)
        send(pipe, message, silence_s=silence_s)

    monkeypatch.setattr(Pipe, "send", late)
    engine = start("sys.exit(3)")
    with pytest.raises(EngineUnavailable, match=r"died while importing vLLM: exit status 3"):
        engine.versions()


@pytest.mark.parametrize(
    ("stage", "does", "kind"),
    [
        ("importing vLLM", "", EngineUnavailable),
        ("loading", GREETED, EngineStartError),
        ("generating", LOADED, EngineDied),
    ],
)
@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("say('INFO: a line of log')", "'INFO: a line of log'"),
        ("say('[1]')", "'[1]'"),
        ("say('{}')", "{}"),
        ('say(\'{"op": "hello"}\')', "{'op': 'hello'}"),
        ("os.write(replies, b'\\x00\\xff\\n')", "'\\x00\ufffd'"),
    ],
)
def test_a_worker_that_speaks_something_else(
    start: Start, stage: str, does: str, kind: type[EngineError], says: str, told: str
) -> None:
    engine = start(f"{does}{says}; hang()")
    with pytest.raises(EngineError) as caught:
        loaded_and_generated(engine)
    assert type(caught.value) is kind
    first, second, *_ = str(caught.value).splitlines()
    assert first == (
        f"the baseline engine of profile `small` sent what is no reply while {stage}: {told}"
    )
    assert second == f"log: {engine.log_path}"
    assert not group(engine.pid)


@pytest.mark.parametrize(
    ("stage", "does"), [("importing vLLM", ""), ("loading", GREETED), ("generating", LOADED)]
)
@pytest.mark.parametrize("says", ["", "os.write(replies, b'{\"res');"])
def test_a_worker_that_falls_silent(start: Start, stage: str, does: str, says: str) -> None:
    name = {"importing vLLM": "import_s", "loading": "load_s"}.get(stage, "silence_s")
    engine = start(f"print('busy', flush=True); {does}{says} hang()", **{name: 0.5})
    begun = time.monotonic()
    with pytest.raises(EngineTimeout) as caught:
        loaded_and_generated(engine)
    assert time.monotonic() - begun < 5
    assert str(caught.value) == (
        f"the baseline engine of profile `small` was silent for 0.5 s while {stage}, and was ended"
        f"\nlog: {engine.log_path}\n    busy\n"
        "hint: if it is slow rather than hung, raise the profile's `timeouts`"
    )
    assert not group(engine.pid)


def test_a_stopped_worker_is_a_silent_one(start: Start) -> None:
    engine = start(f"{LOADED} hang()", silence_s=0.5)
    engine.load()
    os.kill(engine.pid, signal.SIGSTOP)
    with pytest.raises(
        EngineTimeout, match=r"^the baseline engine .* was silent for 0.5 s while ge"
    ):
        generated(engine)
    assert not group(engine.pid)


def test_a_worker_that_reads_nothing_is_a_silent_one(start: Start) -> None:
    engine = start("load(); hang()", silence_s=0.5)
    engine.load()
    long = replace(PROMPT, request={**PROMPT.request, "stop": ["x" * 1_000_000]})
    with pytest.raises(EngineTimeout, match=r"was silent for 0.5 s while generating"):
        engine.generate([long], concurrency=1)


def test_silence_is_counted_from_the_last_sign_of_life(start: Start) -> None:
    engine = start(
        LOADED + "[(reply(progress={'num_finished': n, 'num_output_tokens': 9}), time.sleep(0.3)) "
        "for n in range(5)]; generate()",
        silence_s=1,
    )
    engine.load()
    told: list[int] = []
    engine.generate(
        [PROMPT], concurrency=1, progress=lambda facts: told.append(facts["num_finished"])
    )
    assert told == [0, 1, 2, 3, 4]


def test_a_worker_that_closes_its_pipe_but_lives(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "CLOSE_GRACE_S", 0.3)
    engine = start("greet(); os.close(replies); hang()")
    with pytest.raises(EngineStartError, match=r"died while loading: its pipe closed\nlog: "):
        engine.load()
    assert not group(engine.pid)


CHILD = "child = subprocess.Popen(['sleep', '1000'], close_fds={close_fds}); "


@pytest.mark.parametrize("ends", ["sys.exit(3)", "os.kill(os.getpid(), 9)", "hang()"])
def test_what_a_worker_started_ends_with_it(start: Start, ends: str) -> None:
    engine = start(CHILD.format(close_fds=True) + ends, import_s=0.5)
    with pytest.raises(EngineError):
        engine.load()
    assert group_ends(engine.pid, within_s=1)


def test_a_dead_worker_is_seen_though_its_child_holds_the_pipe(start: Start) -> None:
    engine = start(
        "os.set_inheritable(replies, True); " + CHILD.format(close_fds=False) + "sys.exit(3)",
        import_s=60,
    )
    begun = time.monotonic()
    with pytest.raises(EngineUnavailable, match=r"died while importing vLLM: exit status 3"):
        engine.load()
    assert time.monotonic() - begun < 5
    assert group_ends(engine.pid, within_s=1)


@pytest.mark.parametrize(
    ("does", "longest_s"),
    [
        # Idle, it is given the time to end well; busy, it is not.
        ("load(); take(); sys.exit(0)", 0.25),
        ("load(); signal.signal(15, signal.SIG_IGN); hang()", 2.0),
        ("load(); take(); " + CHILD.format(close_fds=True) + "sys.exit(0)", 0.5),
    ],
)
def test_close_ends_a_worker_that_was_loaded(
    start: Start, monkeypatch: pytest.MonkeyPatch, does: str, longest_s: float
) -> None:
    monkeypatch.setattr(process, "CLOSE_GRACE_S", 0.3)
    engine = start(does)
    engine.load()
    begun = time.monotonic()
    engine.close()
    assert time.monotonic() - begun < longest_s
    assert group_ends(engine.pid, within_s=1)
    engine.close()
    with pytest.raises(EngineDied, match=r"died while generating"):
        generated(engine)


def test_a_group_is_killed_once_and_before_its_number_is_free(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = start("sys.exit(3)")
    real, killed = os.killpg, []

    def killpg(number: int, kind: int) -> None:
        # Fails when it was asked after already, for then another process may have the number.
        os.waitid(os.P_PID, engine.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        killed.append(number)
        real(number, kind)

    monkeypatch.setattr(os, "killpg", killpg)
    with pytest.raises(EngineUnavailable):
        engine.load()
    engine.close()
    engine.close()
    assert killed == [engine.pid]


def test_a_second_ctrl_c_while_it_ends_leaves_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = start("load(); hang()")
    engine.load()

    def interrupted(_timeout_s: float = 0.0) -> bool:
        if _timeout_s:
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(engine._process, "has_ended", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.close()
    assert not group(engine.pid)


def test_a_worker_that_even_the_kernel_cannot_end_hangs_nobody(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "KILL_GRACE_S", 0.2)
    engine = start("hang()", import_s=0.2)
    begun = time.monotonic()
    with monkeypatch.context() as patched:
        patched.setattr(os, "killpg", lambda *_: None)
        with pytest.raises(EngineTimeout, match=r"was silent for 0.2 s"):
            engine.load()
    assert time.monotonic() - begun < 10
    assert group(engine.pid)


@pytest.mark.parametrize(
    ("kind", "error", "told"),
    [
        ("config", ConfigError, "^profile `small`: why$"),
        ("failed", EngineStartError, "^the baseline engine .* failed while loading: why\nlog: "),
        (
            "request",
            RequestRefused,
            "^the baseline engine of profile `small` refused a request: why$",
        ),
        (
            "unsupported",
            CircumstanceUnsupported,
            "^the baseline engine of profile `small`: why$",
        ),
        (
            "unavailable",
            EngineUnavailable,
            "^vLLM cannot be imported under: .*interpreter\nwhy\nhint: install it with `.*inter",
        ),
    ],
)
def test_what_the_worker_itself_reports(
    start: Start, monkeypatch: pytest.MonkeyPatch, kind: str, error: type[SpecdecError], told: str
) -> None:
    monkeypatch.setattr(process, "CLOSE_GRACE_S", 0.1)
    engine = start(GREETED + f"reply(error={{'kind': '{kind}', 'message': 'why'}}); hang()")
    with pytest.raises(SpecdecError, match=told) as caught:
        engine.load()
    assert type(caught.value) is error
    assert bool(group(engine.pid)) is (kind in ("config", "request", "unsupported"))


def test_a_failure_of_a_loaded_engine_is_its_end(start: Start) -> None:
    engine = start(LOADED + "reply(error={'kind': 'failed', 'message': 'why'}); hang()")
    engine.load()
    with pytest.raises(EngineDied, match=r"failed while generating: why\nlog: "):
        generated(engine)
    assert not group(engine.pid)


def test_asked_again_an_unavailable_engine_answers_at_once(start: Start) -> None:
    engine = start("take(); reply(error={'kind': 'unavailable', 'message': 'why'}); hang()")
    for _ in range(2):
        with pytest.raises(EngineUnavailable):
            engine.versions()


WORKING = (
    "reply(progress={'num_output_tokens': 9, 'num_finished': 2}), time.sleep(0.02), "
    "time.monotonic() - begun"
)


def test_an_engine_that_goes_on_and_on_is_ended(start: Start) -> None:
    engine = start(
        LOADED + f"begun = time.monotonic(); print('at work', flush=True)\n"
        f"while ({WORKING})[2] < 60: pass",
        pass_s=0.4,
    )
    engine.load()
    begun = time.monotonic()
    told: list[Mapping[str, int]] = []
    with pytest.raises(EngineTimeout) as caught:
        engine.generate([PROMPT], concurrency=1, progress=told.append)
    assert 0.4 <= time.monotonic() - begun < 10
    assert len(told) > 1
    assert str(caught.value).splitlines() == [
        "the baseline engine of profile `small` took more than 0.4 s while generating, and was "
        "ended; so far: num_finished 2, num_output_tokens 9",
        f"log: {engine.log_path}",
        "    at work",
        "hint: if the work is that long, raise the profile's `timeouts.pass_s`; if it was not "
        "before, the engine has become slower",
    ]
    assert not group(engine.pid)
    with pytest.raises(EngineDied, match=r"died while generating"):
        generated(engine)


def test_each_pass_has_that_long(start: Start) -> None:
    working = f"begun = time.monotonic()\nwhile ({WORKING})[2] < 0.3: pass\ngenerate()\n"
    engine = start(f"load()\ntake()\n{working}take()\n{working}hang()", pass_s=0.5)
    engine.load()
    assert generated(engine) + generated(engine) == [7, 7]


def test_loading_is_no_pass(start: Start) -> None:
    engine = start(
        f"greet()\ntake()\nbegun = time.monotonic()\nwhile ({WORKING})[2] < 0.4: pass\n"
        "reply(result={'load_s': 0.4, 'config': {}})\nhang()",
        pass_s=0.1,
    )
    assert engine.load().load_s == 0.4


def test_a_circumstance_is_told_with_the_requests(start: Start) -> None:
    engine = start(
        "load()\n"
        "for _ in range(2):\n"
        "    take()\n"
        "    print([command['circumstance'], command['concurrency']], flush=True)\n"
        "    generate()\n"
        "hang()"
    )
    engine.load()
    engine.generate([PROMPT], concurrency=2, circumstance="after-sleep")
    engine.generate([PROMPT], concurrency=1)
    assert engine.log_path.read_text().splitlines() == ["['after-sleep', 2]", "[None, 1]"]


def test_what_cannot_be_brought_about_leaves_the_engine_at_work(start: Start) -> None:
    engine = start(
        LOADED
        + "reply(error={'kind': 'unsupported', 'message': 'why'}); take(); generate(); hang()"
    )
    engine.load()
    with pytest.raises(CircumstanceUnsupported, match=r"^the baseline engine .*: why$"):
        engine.generate([PROMPT], concurrency=1, circumstance="after-sleep")
    assert generated(engine) == [7]


def test_a_refused_request_leaves_the_engine_at_work(start: Start) -> None:
    engine = start(
        LOADED + "reply(error={'kind': 'request', 'message': 'why'}); take(); generate(); take()"
    )
    engine.load()
    with pytest.raises(EngineError, match=r"refused a request: why"):
        generated(engine)
    assert generated(engine) == [7]


def test_no_call_gets_the_reply_of_an_interrupted_one(start: Start) -> None:
    engine = start(
        LOADED + "reply(progress={'num_finished': 0, 'num_output_tokens': 0}); "
        "reply(progress={'num_finished': 1, 'num_output_tokens': 0}); generate(1); "
        "take(); generate(2); take()"
    )
    engine.load()

    def interrupt(_: Mapping[str, int]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.generate([PROMPT], concurrency=1, progress=interrupt)
    told: list[int] = []
    second = engine.generate(
        [PROMPT], concurrency=1, progress=lambda facts: told.append(facts["num_finished"])
    )
    assert second.generations[0].token_ids == (2,)
    assert told == []


@pytest.mark.parametrize("kind", ["missing", "not executable", "a folder", "no program"])
def test_an_interpreter_that_cannot_be_started(start: Start, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "python"
    if kind == "a folder":
        path.mkdir()
    elif kind != "missing":
        path.write_bytes(b"\x00\x01")
        path.chmod(0o755 if kind == "no program" else 0o644)
    with pytest.raises(EngineUnavailable) as caught:
        start("", python=path)
    first, second, hint = str(caught.value).splitlines()
    assert first == f"the interpreter cannot be started: {path}"
    assert second.startswith("[Errno ")
    assert hint == "hint: give one that has vLLM with `--specdec-python PATH`"


@pytest.mark.parametrize("kind", ["a file for a folder", "a folder for a file"])
def test_a_log_that_cannot_be_written(start: Start, tmp_path: Path, kind: str) -> None:
    logs = tmp_path / "logs"
    if kind == "a file for a folder":
        logs.touch()
    else:
        (logs / "engine.log").mkdir(parents=True)
    with pytest.raises(EngineStartError) as caught:
        start("hang()")
    first, second, hint = str(caught.value).splitlines()
    assert first == (
        f"the log of the baseline engine of profile `small` cannot be written: {logs}/engine.log"
    )
    assert second.startswith("[Errno ")
    assert hint == "hint: name another folder with `--specdec-report DIR`"


def num_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("body", [None, "sys.exit(3)", "say('garbage'); hang()"])
def test_failed_starts_leak_no_descriptor(start: Start, tmp_path: Path, body: str | None) -> None:
    def fail() -> None:
        with pytest.raises(EngineUnavailable):
            start(body or "", python=None if body else tmp_path / "none").load()

    fail()
    before = num_descriptors()
    for _ in range(20):
        fail()
    assert num_descriptors() == before


def test_only_the_end_of_a_long_log_is_quoted(start: Start) -> None:
    engine = start(
        "print('first', flush=True); "
        "sys.stdout.buffer.write(b'\\xff' + b'x' * 5_000_000 + b'\\n'); "
        "[print('line', n) for n in range(20)]; sys.stdout.flush(); sys.exit(3)"
    )
    with pytest.raises(EngineUnavailable) as caught:
        engine.load()
    quoted = [line for line in str(caught.value).splitlines() if line.startswith("    ")]
    assert quoted == [f"    line {n}" for n in range(5, 20)]


def test_a_log_that_is_gone_does_not_hide_the_cause(start: Start) -> None:
    engine = start("os.unlink('engine.log'); sys.exit(3)")
    with pytest.raises(EngineUnavailable) as caught:
        engine.load()
    assert str(caught.value).splitlines()[1] == f"log: {engine.log_path}"


def test_each_start_begins_a_new_log(start: Start) -> None:
    for text in ("old", "new"):
        engine = start(f"print('{text}', flush=True); greet(); take()")
        engine.versions()
    assert engine.log_path.read_text() == "new\n"


def test_whose_environment_wins(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "2")
    monkeypatch.setenv("KMP_BLOCKTIME", "3")
    monkeypatch.setenv("ITS_OWN", "4")
    monkeypatch.delenv("KMP_TPAUSE", raising=False)
    names = ("VLLM_CPU_KVCACHE_SPACE", "KMP_BLOCKTIME", "ITS_OWN", "KMP_TPAUSE", "SPECDEC_DEVICE")
    engine = start(
        f"take(); reply(result={{name: os.environ[name] for name in {names}}}); take()",
        env={"KMP_BLOCKTIME": "5"},
    )
    assert tuple(engine.versions().values()) == ("2", "5", "4", "0", "cpu")


def test_ctrl_c_at_the_terminal_does_not_reach_the_worker(start: Start) -> None:
    engine = start("greet(); take()")
    engine.versions()
    assert os.getpgid(engine.pid) == os.getsid(engine.pid) == engine.pid != os.getpgid(0)


# The real worker, with stand-ins for what it imports.


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A folder with stand-ins for vLLM, torch and Intel's OpenMP, first on the worker's path."""
    folder = tmp_path / "modules"
    info = folder / "intel_openmp-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: intel-openmp\nVersion: 1\n")
    (info / "RECORD").write_text("other.so,,\nlib/libiomp5.so,,\n")
    (folder / "vllm.py").write_text(
        "import os, sys\nLLM = object\n__version__ = repr([sys.path[0], sys.flags.dev_mode, "
        "os.environ.get('LD_PRELOAD')])\n"
    )
    (folder / "torch.py").write_text(
        "from types import SimpleNamespace\n__version__ = '2'\n"
        "version = SimpleNamespace(cuda=None)\n"
        "cuda = SimpleNamespace(is_available=lambda: False)\n"
    )
    return folder


def real(start: Start, modules: Path, **env: str) -> ProcessEngine:
    env = {"PYTHONPATH": str(modules), "LD_PRELOAD": "", **env}
    return start("", python=Path(sys.executable), env=env)


def test_the_real_worker_finds_its_own_modules_first(start: Start, modules: Path) -> None:
    versions = real(start, modules).versions()
    assert versions["vllm"] == repr([str(modules), False, f"{modules}/lib/libiomp5.so"])
    assert versions["torch"] == "2"


@pytest.mark.parametrize(
    ("preloaded", "kept"),
    [("/x.so", "{}/lib/libiomp5.so:/x.so"), ("/my/libiomp5.so", "/my/libiomp5.so")],
)
def test_what_is_preloaded_already_stays(
    start: Start, modules: Path, preloaded: str, kept: str
) -> None:
    versions = real(start, modules, LD_PRELOAD=preloaded).versions()
    assert f"'{kept.format(modules)}'" in str(versions["vllm"])


def test_the_interpreter_s_own_flags_are_kept(start: Start, modules: Path, tmp_path: Path) -> None:
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -X dev "$@"\n')
    wrapper.chmod(0o755)
    env = {"PYTHONPATH": str(modules), "LD_PRELOAD": ""}
    assert ", True, " in str(start("", python=wrapper, env=env).versions()["vllm"])


def test_an_interpreter_without_vllm(start: Start, modules: Path) -> None:
    (modules / "vllm.py").write_text("import no_such_module\n")
    with pytest.raises(EngineUnavailable) as caught:
        real(start, modules).versions()
    first, second, hint = str(caught.value).splitlines()
    assert first == f"vLLM cannot be imported under: {sys.executable}"
    assert second == "ModuleNotFoundError: No module named 'no_such_module'"
    assert hint.startswith(
        f"hint: install it with `{sys.executable} -m pip install vllm`, or name "
    )


def test_a_vllm_whose_engine_cannot_be_imported(start: Start, modules: Path) -> None:
    """`import vllm` alone proves nothing: its engine is imported on use."""
    (modules / "vllm.py").write_text("__version__ = '1'\n")
    with pytest.raises(EngineUnavailable, match=r"ImportError: cannot import name 'LLM'"):
        real(start, modules).versions()


def test_a_vllm_that_breaks_while_it_is_imported(start: Start, modules: Path) -> None:
    (modules / "vllm.py").write_text("raise RuntimeError('no device')\n")
    with pytest.raises(
        EngineUnavailable, match=r"failed while importing vLLM: RuntimeError: no dev"
    ):
        real(start, modules).versions()


def test_what_is_missing_while_it_loads_is_not_vllm(start: Start, modules: Path) -> None:
    with pytest.raises(
        EngineStartError, match=r"failed while loading: ModuleNotFoundError: .*vllm"
    ):
        real(start, modules).load()


def test_the_real_worker_s_death_is_seen_at_once(
    start: Start, modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its pipe, which nothing that it started holds open."""
    monkeypatch.setattr(process, "LOOK_S", 20)
    (modules / "vllm.py").write_text("import os\nos._exit(5)\n")
    begun = time.monotonic()
    with pytest.raises(EngineUnavailable, match=r"died while importing vLLM: exit status 5"):
        real(start, modules).versions()
    assert time.monotonic() - begun < 15


STUCK = """
import dataclasses, sys, time
from types import ModuleType, SimpleNamespace


@dataclasses.dataclass
class Arguments:
    model: str = ""


class Engine:
    vllm_config = SimpleNamespace(
        model_config=SimpleNamespace(max_model_len=9),
        scheduler_config=SimpleNamespace(max_num_seqs=9),
        cache_config=None,
    )

    def step(self):
        time.sleep(0.01)
        return []

    def __getattr__(self, name):
        return lambda *_: None


class LLM:
    __init__ = reset_prefix_cache = lambda self, **_: None
    llm_engine = Engine()
    get_metrics = lambda self: [SimpleNamespace(name="vllm:kv_cache_usage_perc", value=0.5)]
    get_tokenizer = lambda self: SimpleNamespace(apply_chat_template=lambda *_, **__: [1])


SamplingParams = StructuredOutputsParams = SimpleNamespace
RequestOutputKind = SimpleNamespace(DELTA="delta")
EngineArgs = Arguments
__version__ = "1"
__path__ = []
for name in ("engine", "engine.arg_utils", "sampling_params"):
    sys.modules["vllm." + name] = sys.modules["vllm"]
"""


def test_an_engine_that_steps_and_brings_nothing_is_a_silent_one(
    start: Start, modules: Path
) -> None:
    (modules / "vllm.py").write_text(STUCK)
    env = {"PYTHONPATH": str(modules), "LD_PRELOAD": ""}
    engine = start("", python=Path(sys.executable), env=env, silence_s=1)
    engine.load()
    begun = time.monotonic()
    with pytest.raises(EngineTimeout, match=r"was silent for 1 s while generating"):
        engine.generate([PROMPT], concurrency=1)
    assert time.monotonic() - begun < 10


PARENT = """
import os, sys
from pathlib import Path
from pytest_specdec.engines.process import ProcessEngine
from tests.engines.workers import profile

folder = Path(sys.argv[1])
engine = ProcessEngine(
    profile(folder), "baseline", python=Path(sys.executable), log_path=folder / "engine.log"
)
print(engine.pid, flush=True)
if sys.argv[2] == "later":
    engine.versions()
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("moment", ["at once", "later"])
def test_a_killed_pytest_takes_the_worker_and_its_children_with_it(
    tmp_path: Path, modules: Path, moment: str
) -> None:
    (modules / "vllm.py").write_text(
        "import subprocess\nLLM = object\n__version__ = '1'\nsubprocess.Popen(['sleep', '1000'])\n"
    )
    env = {**os.environ, "PYTHONPATH": f"{modules}{os.pathsep}{ROOT}"}
    parent = subprocess.run(
        [sys.executable, "-c", PARENT, str(tmp_path), moment],
        env=env,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert parent.returncode == -signal.SIGKILL, parent.stderr
    assert re.fullmatch(r"\d+\n", parent.stdout)
    assert group_ends(int(parent.stdout), within_s=10)


def test_the_real_worker_ends_when_it_is_told(start: Start, modules: Path) -> None:
    engine = real(start, modules)
    engine.versions()
    begun = time.monotonic()
    engine.close()
    assert time.monotonic() - begun < 5
    assert engine._process.returncode == 0


def test_profile_is_told_in_every_message(start: Start, tmp_path: Path) -> None:
    speculative = ProcessEngine(
        _named(profile(tmp_path), "other"),
        "speculative",
        python=interpreter(tmp_path, "sys.exit(3)"),
        log_path=tmp_path / "other.log",
    )
    with pytest.raises(EngineUnavailable, match=r"^the speculative engine of profile `other` died"):
        speculative.load()


def _named(given: Profile, name: str) -> Profile:
    return replace(given, name=name)
