"""Where the time of a run goes: for each operation and iteration by ONNX Runtime's profile,
OpenVINO's counters, or our executor.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from loopscope.debug.debugger import Debugger
from loopscope.debug.inputs import Inputs, bind
from loopscope.errors import EngineError
from loopscope.executor.machine.execute import computing
from loopscope.executor.machine.limits import Limits
from loopscope.executor.plan.plan import Program
from loopscope.ir.model import Model
from loopscope.ir.walk import graphs
from loopscope.native.run_once import never
from loopscope.peers import npz_protocol, onnxruntime_profile
from loopscope.peers.clocked import MOST_TIMES, Clock, Clocked, Iterations, by_cost
from loopscope.peers.other_runtimes import (
    CALLED,
    PACKAGES,
    Patience,
    document_file,
    runtime_of,
    said_alone,
)

Runtime = Literal["onnxruntime", "openvino", "loopscope"]
MOST_STEPS = 200_000
"""Of our executor; what comes after them is not timed."""
_WARM_SECONDS = 5.0
_LOOK_AFTER = 256
"""Steps between two looks whether it is to stop."""


def clock(
    model: Model,
    inputs: Inputs,
    *,
    runtime: Runtime | None = None,
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> Clock:
    """Runs a model with one runtime and says where its time goes; without a choice, with the
    model's own, or ours where that is missing.

    Other runtimes run in a process of their own, on one thread, twice: the second run counts.
    ``EngineError`` when the runtime is not installed, is not the model's, cannot run it, or is no
    longer waited for.
    """
    own: Runtime = "onnxruntime" if model.dialect == "onnx" else "openvino"
    chosen = runtime or (own if runtime_of(model) else "loopscope")
    if chosen == "loopscope":
        return _ours(model, inputs, stopped)
    if chosen != own:
        raise EngineError(
            f"{chosen} does not run this model: {CALLED[model.dialect]} does, or Loopscope itself (loopscope)"
        )
    if not runtime_of(model):
        raise EngineError(
            f"to time the run with {CALLED[model.dialect]}, install {PACKAGES[model.dialect]}: pip install {PACKAGES[model.dialect]}"
        )
    given = bind(model, inputs)
    fed = [given[signature.layer] for signature in model.inputs]
    with tempfile.TemporaryDirectory(prefix="loopscope-") as name:
        folder = Path(name)
        npz_protocol.write(folder / "inputs.npz", fed)
        file, target = document_file(model, folder, document), folder / "clock.json"
        names: Mapping[str, tuple[str, str]] = {}
        if own == "onnxruntime":
            names = onnxruntime_profile.named(model, file, folder / "named.onnx")
            file = folder / "named.onnx"
        process = Path(__file__).with_name(f"{own}_clock_process.py")
        called = said_alone(
            CALLED[model.dialect],
            "run",
            process,
            folder / "inputs.npz",
            file,
            target,
            patience=Patience(seconds, stopped),
        )
        events = json.loads(target.read_text("utf-8"))
    return (
        _openvino(model, called, events)
        if own == "openvino"
        else onnxruntime_profile.clock(model, inputs, called, events, names, seconds)
    )


# -- OpenVINO


def _openvino(model: Model, runtime: str, rows: Sequence[Mapping[str, Any]]) -> Clock:
    """One row for each operation of the outermost graph: OpenVINO tells nothing of bodies."""
    place = next(graphs(model))
    addresses = {node.name: f"main/{place.labels[node.id]}" for node in place.graph.nodes}
    found: dict[str, Clocked] = {}
    for one in rows:
        name = str(one["name"])
        found.setdefault(name, Clocked(addresses.get(name, ""), str(one["kind"]), name)).add(
            float(one["lasted"])
        )
    note = (
        "OpenVINO tells nothing of what is inside loops and branches."
        if any(node.bodies for node in place.graph.nodes)
        else ""
    )
    return Clock(
        runtime, sum(row.microseconds for row in found.values()), by_cost(found.values()), note=note
    )


# -- ours


def _ours(model: Model, inputs: Inputs, stopped: Callable[[], bool]) -> Clock:
    """Each operation as stepping runs it; loops run faster without being watched."""
    Debugger(
        model, inputs, limits=Limits(seconds=_WARM_SECONDS)
    ).run()  # what is slow the first time only, such as reading weights
    machine, steps = Debugger(model, inputs).machine, 0
    rows: dict[str, Clocked] = {}
    iterations = _Iterating()
    with computing():
        while machine.state == "paused" and steps < MOST_STEPS:
            if steps % _LOOK_AFTER == 0 and stopped():
                raise EngineError("the clock was stopped")
            frame = machine.frames[-1]
            at, program = frame.position, frame.program
            bodies = [
                (one.program, one.iteration) for one in machine.frames if one.region is not None
            ]
            began = time.perf_counter()
            machine.step()
            lasted = (time.perf_counter() - began) * 1e6
            steps += 1
            iterations.add(bodies, lasted)
            if at < len(program.instructions) and program.instructions[at].region is None:
                instruction = program.instructions[at]
                address = f"{program.address}/{instruction.label}"
                rows.setdefault(
                    address, Clocked(address, instruction.node.type, instruction.node.name)
                ).add(lasted)
    note = "Times of stepping: unwatched, loops run faster here."
    if machine.state == "paused":
        note = f"Only the first {MOST_STEPS:,} steps were timed. {note}"
    return Clock(
        "Loopscope",
        sum(row.microseconds for row in rows.values()),
        by_cost(rows.values()),
        iterations.told(),
        note,
    )


@dataclass(slots=True)
class _Iterating:
    """The time of each iteration of each loop, inner loops and branches in it too."""

    times: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    """By the static address of the loop, all executions one after the other."""
    counts: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    _open: dict[str, tuple[tuple[int, ...], int]] = field(
        default_factory=dict[str, tuple[tuple[int, ...], int]]
    )
    """By loop the iterations of all loops around that were timed last, and its place in
    ``times``.
    """

    def add(self, bodies: Sequence[tuple[Program, int]], lasted: float) -> None:
        around: tuple[int, ...] = ()
        for program, iteration in bodies:
            address, outer = program.address.rpartition("/")[0], around
            around = (*around, iteration)
            times, counts = self.times.setdefault(address, []), self.counts.setdefault(address, [])
            last = self._open.get(address)
            if last is None or last[0] != around:
                if last is None or last[0][:-1] != outer or iteration <= last[0][-1]:
                    counts.append(0)
                counts[-1] += 1
                times.append(0.0)
                self._open[address] = around, len(times) - 1
            times[self._open[address][1]] += lasted

    def told(self) -> tuple[Iterations, ...]:
        return tuple(
            Iterations(one, tuple(self.counts[one]), (), tuple(times[:MOST_TIMES]))
            for one, times in self.times.items()
        )
