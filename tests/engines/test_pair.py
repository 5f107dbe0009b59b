"""A pair of fake engines asked what it took, and what its steps cost: which engines run when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_specdec import model_fit
from pytest_specdec.engines.pair import EnginePair
from pytest_specdec.errors import EngineDied, ModelError
from pytest_specdec.generation import ROLES
from pytest_specdec.profile import Profile, read_profiles
from pytest_specdec.workload import Workload, read_workload
from tests.fake_engine.project import FAST, Project
from tests.weight_files import write_weights

DRAFT = {"method": "draft_model", "model": "./draft", "num_speculative_tokens": 3}
# An engine that is a process of Python's own takes a few of these.
MIB = 2**20
Start = Callable[..., EnginePair]


@dataclass
class Told:
    """A watch that keeps what it is told."""

    phases: list[str] = field(default_factory=list)

    def phase(self, text: str) -> None:
        self.phases.append(text)

    def progress(self, text: str) -> None:
        """Nobody looks."""


@pytest.fixture
def watch() -> Told:
    return Told()


@pytest.fixture
def start(project: Project, watch: Told) -> Iterator[Start]:
    """Makes a pair of the project's profile; afterwards nothing of it may run."""
    made: list[EnginePair] = []

    def start_one(**changes: Any) -> EnginePair:
        project.profiles(fast=FAST)
        own: Profile = read_profiles(project.folder / "specdec.toml").chosen("fast")
        logs = project.folder / "logs"
        profile = replace(own, **changes)
        made.append(EnginePair(profile, python=project.python, log_folder=logs, watch=watch))
        return made[-1]

    yield start_one
    for each in made:
        each.close()
    assert project.engines_left_behind() == []


@pytest.fixture
def code(project: Project) -> Workload:
    project.workload("code", "one", "two", concurrency=2)
    return read_workload(project.folder / "suites/code.jsonl")


def with_draft(project: Project, millions: int = 1) -> None:
    for name, size in (("model", 10), ("draft", millions)):
        write_weights(project.folder / name / "model.safetensors", w=("F32", [size, 1_000_000]))
        project.file(f"{name}/config.json", '{"vocab_size": 3}')


def models(project: Project) -> list[str]:
    """The names of the folders that engines loaded, in order."""
    loads = [each["command"]["engine_args"] for each in project.commands() if each["op"] == "load"]
    return [
        Path(each["model"]).name + ("+speculation" if "speculative_config" in each else "")
        for each in loads
    ]


def test_a_pair_knows_no_cost_before_both_have_loaded(start: Start) -> None:
    pair = start()
    assert pair.cost() is None
    pair.engine("baseline")
    assert pair.cost() is None


@pytest.mark.parametrize("layout", ["concurrent", "sequential"])
def test_the_cost_is_of_both_engines_also_when_they_have_ended(
    project: Project, start: Start, layout: Any
) -> None:
    project.fake(config={"cache_config.num_gpu_blocks": 7, "cache_config.block_size": 16})
    pair = start(layout=layout)
    for role in ROLES:
        pair.engine(role)
    running = pair.cost()
    pair.close()
    ended = pair.cost()
    for cost in (running, ended):
        assert cost is not None
        for own in (cost.baseline, cost.speculative):
            assert (own.load_s, own.kv_cache_blocks, own.kv_cache_tokens) == (1.5, 7, 112)
            assert own.peak_memory_bytes is not None
            assert MIB < own.peak_memory_bytes < 1000 * MIB


def test_a_draft_is_loaded_alone_in_the_speculative_engine_s_place(
    project: Project, start: Start, code: Workload
) -> None:
    with_draft(project)
    pair = start(speculative_config=DRAFT)
    pair.run(code)
    costs = pair.step_costs(code)
    assert costs is not None
    assert (costs.draft_ratio, costs.verification_ratio) == (1.0, 1.0)
    assert models(project) == ["model", "model+speculation", "draft"]
    # Both were asked, one engine beside the other; the third is gone.
    assert len(project.living_engines()) == 2
    cost = pair.cost()
    assert cost is not None
    assert cost.size_ratio == 10
    pair.step_costs(code)
    assert models(project) == ["model", "model+speculation", "draft"]
    pair.engine("speculative")
    assert models(project) == ["model", "model+speculation", "draft", "model+speculation"]
    assert len(project.living_engines()) == 2
    assert pair.num_starts == {"baseline": 1, "speculative": 2}


def test_a_pair_that_ends_ends_the_draft_too(
    project: Project, start: Start, code: Workload
) -> None:
    with_draft(project)
    pair = start(speculative_config=DRAFT)
    pair.step_costs(code)
    assert models(project) == ["model", "draft"]
    pair.close()
    assert project.engines_left_behind() == []


def test_where_one_fits_one_is_loaded(project: Project, start: Start, code: Workload) -> None:
    with_draft(project)
    pair = start(speculative_config=DRAFT, layout="sequential")
    pair.engine("speculative")
    costs = pair.step_costs(code)
    assert costs is not None
    assert costs.draft_ratio == 1.0
    assert models(project) == ["model+speculation", "model", "draft"]
    assert len(project.living_engines()) == 1
    pair.engine("baseline")
    assert len(project.living_engines()) == 1


def test_without_a_draft_model_no_third_engine_is_started(
    project: Project, start: Start, code: Workload
) -> None:
    pair = start()
    pair.engine("speculative")
    costs = pair.step_costs(code)
    assert costs is not None
    assert (costs.draft_ratio, costs.verification_ratio) == (0.0, 1.0)
    assert models(project) == ["model+speculation", "model"]
    assert len(project.living_engines()) == 2


def test_a_draft_that_does_not_load_alone_leaves_the_pair_whole(
    project: Project, start: Start, code: Workload, watch: Told
) -> None:
    # It is the only engine whose interpreter answers nothing to its first `load`.
    with_draft(project)
    project.fake(on={"load": ["failed", "ValueError: too long"]})
    pair = start(speculative_config=DRAFT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAKE_ENGINE", "{}")
        pair.engine("baseline")
    costs = pair.step_costs(code)
    assert costs is not None
    assert (costs.draft_ratio, costs.verification_ratio) == (None, 1.0)
    assert costs.notes == (
        "draft: the baseline engine of profile `fast, its draft model alone` failed while "
        "loading: ValueError: too long",
    )
    assert f"note: {costs.notes[0]}" in watch.phases
    assert pair.failure is None
    assert len(project.living_engines()) == 1
    # It is not tried again for another load.
    pair.step_costs(replace(code, concurrency=1))
    assert models(project).count("draft") == 1


def test_a_baseline_engine_that_dies_ends_the_pair(
    project: Project, start: Start, code: Workload
) -> None:
    project.fake(baseline={"on": {"generate": "die"}})
    pair = start()
    with pytest.raises(EngineDied, match="the baseline engine of profile `fast` died"):
        pair.step_costs(code)
    with pytest.raises(EngineDied, match="not run, because earlier the baseline engine"):
        pair.step_costs(code)


def test_a_large_draft_is_noted_once(project: Project, start: Start, watch: Told) -> None:
    with_draft(project, millions=4)
    pair = start(speculative_config=DRAFT)
    pair.check_models()
    pair.start()
    (note,) = (each for each in watch.phases if each.startswith("note: "))
    assert "only 2.5 times as large" in note


def test_a_draft_as_large_as_the_target_is_refused_before_anything_starts(
    project: Project, start: Start
) -> None:
    with_draft(project, millions=10)
    pair = start(speculative_config=DRAFT)
    with pytest.raises(ModelError, match="at least as large as the target"):
        pair.check_models()
    with pytest.raises(ModelError, match="at least as large as the target"):
        pair.engine("baseline")
    assert project.commands() == []


def test_a_head_of_the_target_may_be_of_any_size(project: Project, start: Start) -> None:
    config = {**DRAFT, "method": "eagle3"}
    with_draft(project, millions=10)
    pair = start(speculative_config=config)
    pair.check_models()


def test_what_does_not_fit_the_memory_is_refused_before_anything_starts(
    project: Project, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_fit, "available_bytes", lambda: 30 * MIB)
    with_draft(project)
    pair = start(speculative_config=DRAFT)
    pair.check_models()  # others may still hold what they will give back
    with pytest.raises(ModelError, match=r"do not fit the memory: target 0\.0 GiB"):
        pair.engine("baseline")
    assert project.commands() == []
