"""Where the time of a run goes: for each operation and iteration by ONNX Runtime's profile, OpenVINO's counters, or our executor."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from engine.debug.debugger import Debugger
from engine.debug.inputs import Inputs, bind
from engine.errors import EngineError
from engine.ir.model import Model
from engine.ir.walk import graphs
from engine.native.alone import never
from engine.peers import onnxruntime_profile, transport
from engine.peers.clocked import Clock, Clocked, by_cost
from engine.peers.other_runtimes import CALLED, PACKAGES, Patience, document_file, runtime_of, said_alone
from engine.run.machine.execute import computing

Runtime = Literal["onnxruntime", "openvino", "loopscope"]
MOST_STEPS = 200_000
"""Of our executor; what comes after them is not timed."""


def clock(
    model: Model,
    inputs: Inputs,
    *,
    runtime: Runtime | None = None,
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> Clock:
    """Runs a model with one runtime and says where its time goes; without a choice, with the model's own, or ours where that is missing.

    Other runtimes run in a process of their own, on one thread, twice: the second run counts. ``EngineError`` when the runtime is not
    installed, is not the model's, cannot run it, or is no longer waited for.
    """
    own: Runtime = "onnxruntime" if model.dialect == "onnx" else "openvino"
    chosen = runtime or (own if runtime_of(model) else "loopscope")
    if chosen == "loopscope":
        return _ours(model, inputs)
    if chosen != own:
        raise EngineError(f"{chosen} does not run this model: {CALLED[model.dialect]} does, or Loopscope itself (loopscope)")
    if not runtime_of(model):
        raise EngineError(
            f"to time the run with {CALLED[model.dialect]}, install {PACKAGES[model.dialect]}: pip install {PACKAGES[model.dialect]}"
        )
    given = bind(model, inputs)
    fed = [given[signature.layer] for signature in model.inputs]
    with tempfile.TemporaryDirectory(prefix="loopscope-") as name:
        folder = Path(name)
        transport.write(folder / "inputs.npz", fed)
        file, target = document_file(model, folder, document), folder / "clock.json"
        names: Mapping[str, tuple[str, str]] = {}
        if own == "onnxruntime":
            names = onnxruntime_profile.named(model, file, folder / "named.onnx")
            file = folder / "named.onnx"
        process = Path(__file__).with_name(f"{own}_clock_process.py")
        called = said_alone(CALLED[model.dialect], "run", process, folder / "inputs.npz", file, target, patience=Patience(seconds, stopped))
        events = json.loads(target.read_text("utf-8"))
    return _openvino(model, called, events) if own == "openvino" else onnxruntime_profile.clock(model, inputs, called, events, names)


# -- OpenVINO ---------------------------------------------------------------------------------------------------------


def _openvino(model: Model, runtime: str, rows: Sequence[Mapping[str, Any]]) -> Clock:
    """One row for each operation of the outermost graph: OpenVINO tells nothing of bodies."""
    place = next(graphs(model))
    addresses = {node.name: f"main/{place.labels[node.id]}" for node in place.graph.nodes}
    found: dict[str, Clocked] = {}
    for one in rows:
        name = str(one["name"])
        found.setdefault(name, Clocked(addresses.get(name, ""), str(one["kind"]), name)).add(float(one["lasted"]))
    note = "OpenVINO tells nothing of what is inside loops and branches." if any(node.bodies for node in place.graph.nodes) else ""
    return Clock(runtime, sum(row.microseconds for row in found.values()), by_cost(found.values()), note=note)


# -- ours -------------------------------------------------------------------------------------------------------------


def _ours(model: Model, inputs: Inputs) -> Clock:
    """Each operation as stepping runs it; loops run faster without being watched."""
    debugger = Debugger(model, inputs)
    machine, steps = debugger.machine, 0
    rows: dict[str, Clocked] = {}
    with computing():
        while machine.state == "paused" and steps < MOST_STEPS:
            frame = machine.frames[-1]
            at, program = frame.position, frame.program
            began = time.perf_counter()
            machine.step()
            lasted = (time.perf_counter() - began) * 1e6
            steps += 1
            if at < len(program.instructions) and program.instructions[at].region is None:
                instruction = program.instructions[at]
                address = f"{program.address}/{instruction.label}"
                rows.setdefault(address, Clocked(address, instruction.node.type, instruction.node.name)).add(lasted)
    note = "Times of stepping: unwatched, loops run faster here."
    if machine.state == "paused":
        note = f"Only the first {MOST_STEPS:,} steps were timed. {note}"
    return Clock("Loopscope", sum(row.microseconds for row in rows.values()), by_cost(rows.values()), note=note)
