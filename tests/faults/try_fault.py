"""What each fault does to a real speculative engine, beside the same engine without one.

    python tests/faults/try_fault.py [FAULT ...]

Without names: all that an engine survives, in one engine. A fault that ends its engine is given an
engine of its own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from pytest_specdec.counters import total  # noqa: E402
from pytest_specdec.engines.process import ProcessEngine  # noqa: E402
from pytest_specdec.errors import SpecdecError  # noqa: E402
from pytest_specdec.generation import Pass  # noqa: E402
from pytest_specdec.profile import Profile, Timeouts, read_profiles  # noqa: E402
from pytest_specdec.workload import Prompt, read_workload  # noqa: E402
from tests.faults.install import installed_kit  # noqa: E402

PROFILE = "smollm2-ngram"
WORKLOAD = ROOT / "suites" / "predictable" / "code.jsonl"
NUM_PROMPTS = 4
MAX_TOKENS = 40
NUM_PASSES = 2
MAX_PASSES = 5
SILENCE_S = 15
SURVIVED = (
    "nothing-drafted",
    "garbage-drafts",
    "drafts-worse",
    "drafts-one-token",
    "drafter-slow",
    "verify-slow",
    "all-or-nothing",
    "collapse-after-long-request",
    "acceptance-drifts",
    "counters-inflated",
    "counters-frozen",
    "engine-counters-frozen",
    "usage-wrong",
    "better-drafts",
    "other-log-lines",
    "reordered-batches",
    "slower-target",
)
# What passes before decide: an answer that is known, a prompt that was long, how many there were.
TAUGHT = ("better-drafts", "collapse-after-long-request", "acceptance-drifts")
ENDING = ("crash", "hang", "slow-death", "load-fails")
HEADINGS = ("fault", "same", "drafts", "drafted", "accepted", "rate", "of requests", "time")


def with_faults(profile: Profile, folder: Path) -> Profile:
    """The profile with the kit in its engines and the switch in `folder / "fault"`."""
    env = {
        "SPECDEC_FAULT": f"@{folder / 'fault'}",
        "PYTHONPATH": str(installed_kit(folder / "kit")),
    }
    return replace(profile, env={**profile.env, **env})


@contextmanager
def loaded(profile: Profile, folder: Path) -> Iterator[ProcessEngine]:
    """A speculative engine that is ready."""
    engine = ProcessEngine(
        profile, "speculative", python=Path(sys.executable), log_path=folder / "engine.log"
    )
    try:
        engine.load()
        yield engine
    finally:
        engine.close()


def row(name: str, passes: Sequence[Pass], plain: Sequence[Pass]) -> tuple[str, ...]:
    """One line of the table; time is that of the passes without the fault before and after it."""
    answers = [[each.token_ids for each in taken.generations] for taken in (*plain, *passes)]
    of_engine = total(each.drafts for each in passes if each.drafts is not None)
    told = [each.drafts for taken in passes for each in taken.generations]
    of_requests = total(each for each in told if each is not None)
    rate = of_engine.acceptance_rate
    return (
        name or "(none)",
        "yes" if all(each == answers[0] for each in answers) else "NO",
        str(of_engine.num_drafts),
        str(of_engine.num_draft_tokens),
        f"{of_engine.num_accepted_tokens} {list(of_engine.num_accepted_tokens_per_pos)}",
        "-" if rate is None else f"{rate:.3f}",
        "same"
        if of_requests == of_engine
        else f"{of_requests.num_accepted_tokens} of {of_requests.num_draft_tokens} "
        f"in {of_requests.num_drafts}",
        f"{fastest(passes) / fastest(plain):.2f}",
    )


def fastest(passes: Sequence[Pass]) -> float:
    """Least disturbed by what else the machine does."""
    return min(each.wall_s for each in passes)


def try_together(
    profile: Profile, folder: Path, names: Sequence[str], prompts: Sequence[Prompt]
) -> None:
    """One engine, one fault after another, and none in between."""
    with loaded(profile, folder) as engine:

        def passes(name: str, asked: Sequence[Prompt] = prompts) -> list[Pass]:
            (folder / "fault").write_text(name, encoding="utf-8")
            return [engine.generate(asked, concurrency=NUM_PROMPTS) for _ in range(NUM_PASSES)]

        passes("")
        plain = passes("")
        print(" | ".join(row("", plain, plain)), flush=True)
        for name in names:
            if name in TAUGHT:
                passes(name, [*prompts, long_prompt(prompts[0])])
            taken, before, plain = passes(name), plain, passes("")
            print(" | ".join(row(name, taken, [*before, *plain])), flush=True)


def long_prompt(prompt: Prompt) -> Prompt:
    """One that takes most of the engine's context."""
    messages = [{"role": "user", "content": "red green blue " * 270}]
    return replace(prompt, id="long", request={**prompt.request, "messages": messages})


def try_alone(profile: Profile, folder: Path, name: str, prompts: Sequence[Prompt]) -> None:
    """The first words of the error that the fault ends in, and when that was."""
    switch = folder / "fault"
    begun_s = time.monotonic()
    try:
        switch.write_text(name, encoding="utf-8")
        with loaded(profile, folder) as engine:
            switch.write_text("", encoding="utf-8")
            engine.generate(prompts, concurrency=NUM_PROMPTS)
            switch.write_text(name, encoding="utf-8")
            begun_s = time.monotonic()
            for _ in range(MAX_PASSES):
                engine.generate(prompts, concurrency=NUM_PROMPTS)
        said = "answered as if nothing were wrong"
    except SpecdecError as error:
        said = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    print(f"{name} | after {time.monotonic() - begun_s:.1f} s | {said}", flush=True)


def main() -> None:
    """Tries what is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("faults", nargs="*", metavar="FAULT", help="default: all survived ones")
    names = parser.parse_args().faults or SURVIVED
    profile = read_profiles(ROOT / "specdec.toml").chosen(PROFILE)
    arguments = {**profile.engine_args, "max_model_len": 1024, "max_num_seqs": 8}
    prompts = [
        replace(prompt, request={**prompt.request, "max_tokens": MAX_TOKENS})
        for prompt in read_workload(WORKLOAD).prompts[:NUM_PROMPTS]
    ]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        profile = with_faults(replace(profile, engine_args=arguments), folder)
        if together := [name for name in names if name not in ENDING]:
            print(" | ".join(HEADINGS))
            try_together(profile, folder, together, prompts)
        for name in (name for name in names if name in ENDING):
            impatient = replace(profile, timeouts=Timeouts(silence_s=SILENCE_S))
            try_alone(impatient, folder, name, prompts)


if __name__ == "__main__":
    main()
