"""The bare script the gate's time is compared with: two vLLM engines and nothing else.

    python bare.py PLAN            both engines, in turn, as the plan says; prints one JSON object
    python bare.py PLAN ROLE       one engine, started by the above

No pytest, no counters read, nothing judged or written. `overhead.py` writes the plan: the same
engine arguments, requests, warm-up and order of passes as the gate's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROLES = ("baseline", "speculative")


def sampling_params(request: Mapping[str, Any]) -> Any:
    """One request's, held to a grammar where the workload says so."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    fields = {"temperature": 0, **request}
    del fields["messages"]
    if (declared := fields.pop("structured_outputs", None)) is not None:
        fields["structured_outputs"] = StructuredOutputsParams(**declared)
    if (wanted := fields.pop("response_format", None)) is not None:
        is_any = wanted["type"] == "json_object"
        fields["structured_outputs"] = (
            StructuredOutputsParams(json_object=True)
            if is_any
            else StructuredOutputsParams(json=wanted["json_schema"]["schema"])
        )
    return SamplingParams(**fields, output_kind=RequestOutputKind.FINAL_ONLY)


def walk(llm: Any, requests: Sequence[Mapping[str, Any]], concurrency: int) -> dict[str, Any]:
    """One pass in a closed loop."""
    engine, tokenizer = llm.llm_engine, llm.get_tokenizer()
    prepared = []
    for request in requests:
        encoded = tokenizer.apply_chat_template(
            list(request["messages"]), add_generation_prompt=True, tokenize=True
        )
        token_ids = encoded["input_ids"] if isinstance(encoded, Mapping) else encoded
        prepared.append(({"prompt_token_ids": list(token_ids)}, sampling_params(request)))
    llm.reset_prefix_cache()
    pending, num_in_flight, num_tokens, start = deque(prepared), 0, 0, time.perf_counter()
    while pending or num_in_flight:
        while pending and num_in_flight < concurrency:
            prompt, params = pending.popleft()
            engine.add_request(f"bare-{time.monotonic_ns()}", prompt, params)
            num_in_flight += 1
        for output in engine.step():
            if output.finished:
                num_in_flight -= 1
                num_tokens += len(output.outputs[0].token_ids)
    return {"wall_s": time.perf_counter() - start, "num_output_tokens": num_tokens}


def serve(plan: Mapping[str, Any], role: str) -> None:
    """One engine: loads, then takes the passes it is told to."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what vLLM prints goes to the log
    from vllm import LLM

    llm = None
    for line in sys.stdin:
        index, name = line.split()
        if llm is None:  # on the first command, as the gate does: one engine loads at a time
            llm = LLM(**plan["engines"][role])
        workload = plan["workloads"][int(index)]
        answer = walk(llm, workload[name], workload["concurrency"])
        replies.write(json.dumps(answer) + "\n")
        replies.flush()
    os._exit(0)  # as the gate's engines end: no thread of vLLM's is waited for


def drive(path: Path) -> None:
    """Both engines in turn."""
    plan = json.loads(path.read_text(encoding="utf-8"))
    engines = {role: start(plan, path, role) for role in ROLES}

    def ask(role: str, command: str) -> dict[str, Any]:
        commands, answers = engines[role].stdin, engines[role].stdout
        assert commands is not None
        assert answers is not None
        commands.write(f"{command}\n")
        commands.flush()
        if not (line := answers.readline()):
            raise SystemExit(f"the {role} engine died: see {path.with_suffix(f'.{role}.log')}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    passes = []
    for index in range(len(plan["workloads"])):
        for role in ROLES:
            ask(role, f"{index} warm_up")
        passes += [ask(role, f"{index} requests") for role in plan["order"]]
    for engine in engines.values():
        engine.communicate()
    print(
        json.dumps(
            {
                "wall_s": sum(each["wall_s"] for each in passes),
                "num_output_tokens": sum(each["num_output_tokens"] for each in passes),
            }
        )
    )


def start(plan: Mapping[str, Any], path: Path, role: str) -> subprocess.Popen[str]:
    """One engine's process, its output in a log beside the plan."""
    with path.with_suffix(f".{role}.log").open("wb") as log:
        return subprocess.Popen(
            [plan["python"], __file__, str(path), role],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **plan["env"]},
            text=True,
        )


if __name__ == "__main__":
    if len(sys.argv) > 2:
        serve(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), sys.argv[2])
    else:
        drive(Path(sys.argv[1]))
