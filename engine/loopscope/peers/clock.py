"""Time of a run per operation and iteration, from ONNX Runtime's profile, OpenVINO's counters, or
our executor.
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
from loopscope.executor.machine.state import Failure
from loopscope.executor.plan.plan import Program
from loopscope.ir.address import graphs
from loopscope.ir.model import Model
from loopscope.native.run_once import never
from loopscope.peers import npz_protocol, operation_times
from loopscope.peers.operation_times import MOST_TIMES, Clock, Clocked, Iterations, by_cost
from loopscope.peers.other_runtimes import (
    CALLED,
    PACKAGES,
    Patience,
    document_file,
    run_runtime_process,
    runtime_of,
)

Runtime = Literal["onnxruntime", "openvino", "loopscope"]
MOST_STEPS = 200_000
"""Maximum number of timed steps of our executor; later steps are not timed."""
_WARM_SECONDS = 5.0
_STOP_CHECK_INTERVAL = 256
"""Number of steps between checks for a stop request."""


def clock(
    model: Model,
    inputs: Inputs,
    *,
    runtime: Runtime | None = None,
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> Clock:
    """Run a model with one runtime and return the time of its operations.

    The default is the model's own runtime, or our executor if that is not installed. Other runtimes
    run in a separate process, on one thread, twice; the second run counts. Raise ``EngineError`` if
    the runtime is not installed, does not support the model, fails, or exceeds ``seconds``. Our
    executor times the steps that it runs in that time.
    """
    own: Runtime = "onnxruntime" if model.dialect == "onnx" else "openvino"
    chosen = runtime or (own if runtime_of(model) else "loopscope")
    if chosen == "loopscope":
        return _clock_loopscope(model, inputs, seconds, stopped)
    if chosen != own:
        raise EngineError(
            f"{chosen} does not run this model: {CALLED[model.dialect]} does, "
            f"or Loopscope itself (loopscope)"
        )
    if not runtime_of(model):
        package = PACKAGES[model.dialect]
        raise EngineError(
            f"to time the run with {CALLED[model.dialect]}, "
            f"install {package}: pip install {package}"
        )
    bound = bind(model, inputs)
    feeds = [bound[signature.layer] for signature in model.inputs]
    with tempfile.TemporaryDirectory(prefix="loopscope-") as name:
        folder = Path(name)
        npz_protocol.write(folder / "inputs.npz", feeds)
        file, target = document_file(model, folder, document), folder / "clock.json"
        names: Mapping[str, tuple[str, str]] = {}
        if own == "onnxruntime":
            names = operation_times.named(model, file, folder / "named.onnx")
            file = folder / "named.onnx"
        process = Path(__file__).with_name(f"{own}_clock_process.py")
        called = run_runtime_process(
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
        _clock_openvino(model, called, events)
        if own == "openvino"
        else operation_times.clock(model, inputs, called, events, names, seconds)
    )


# -- OpenVINO


def _clock_openvino(model: Model, runtime: str, rows: Sequence[Mapping[str, Any]]) -> Clock:
    """Return one row per operation of the outermost graph; OpenVINO does not report bodies."""
    place = next(graphs(model))
    addresses = {node.name: f"main/{place.labels[node.id]}" for node in place.graph.nodes}
    clocked: dict[str, Clocked] = {}
    for row in rows:
        name = str(row["name"])
        clocked.setdefault(name, Clocked(addresses.get(name, ""), str(row["kind"]), name)).add(
            float(row["lasted"])
        )
    note = (
        "OpenVINO does not report operations inside loops and branches."
        if any(node.bodies for node in place.graph.nodes)
        else ""
    )
    total = sum(entry.microseconds for entry in clocked.values())
    return Clock(runtime, total, by_cost(clocked.values()), note=note)


# -- ours


def _clock_loopscope(
    model: Model, inputs: Inputs, seconds: float, stopped: Callable[[], bool]
) -> Clock:
    """Return the time of each operation in a stepped run; an unwatched run executes loops
    faster.
    """
    # Warm up: the first run is slow, because it reads weights.
    warm_seconds = min(_WARM_SECONDS, seconds)
    Debugger(model, inputs, limits=Limits(seconds=warm_seconds)).run()
    machine, steps = Debugger(model, inputs).machine, 0
    deadline = time.perf_counter() + seconds
    rows: dict[str, Clocked] = {}
    iterations = _IterationTimes()
    with computing():
        while machine.state == "paused" and steps < MOST_STEPS and time.perf_counter() < deadline:
            if steps % _STOP_CHECK_INTERVAL == 0 and stopped():
                raise EngineError("the clock was stopped")
            frame = machine.frames[-1]
            position, program = frame.position, frame.program
            bodies = [
                (open_frame.program, open_frame.iteration)
                for open_frame in machine.frames
                if open_frame.region is not None
            ]
            began = time.perf_counter()
            try:
                machine.step()
            except Failure as failure:
                raise EngineError(f"the run fails: {failure}") from None
            lasted = (time.perf_counter() - began) * 1e6
            steps += 1
            iterations.add(bodies, lasted)
            if (
                position < len(program.instructions)
                and program.instructions[position].region is None
            ):
                instruction = program.instructions[position]
                address = f"{program.address}/{instruction.label}"
                rows.setdefault(
                    address, Clocked(address, instruction.node.type, instruction.node.name)
                ).add(lasted)
    note = "Times of stepping: unwatched, loops run faster here."
    if machine.state == "paused":
        note = f"Only the first {steps:,} steps were timed. {note}"
    return Clock(
        "Loopscope",
        sum(row.microseconds for row in rows.values()),
        by_cost(rows.values()),
        iterations.result(),
        note,
    )


@dataclass(slots=True)
class _IterationTimes:
    """Time of each iteration of each loop, including nested loops and branches."""

    times: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    """Times by static address of the loop, all executions in order."""
    counts: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    _open: dict[str, tuple[tuple[int, ...], int]] = field(
        default_factory=dict[str, tuple[tuple[int, ...], int]]
    )
    """Iteration numbers timed last, of each loop with its enclosing loops, and the index in
    ``times``.
    """

    def add(self, bodies: Sequence[tuple[Program, int]], lasted: float) -> None:
        iterations: tuple[int, ...] = ()
        for program, iteration in bodies:
            address, outer = program.address.rpartition("/")[0], iterations
            iterations = (*iterations, iteration)
            times, counts = self.times.setdefault(address, []), self.counts.setdefault(address, [])
            last = self._open.get(address)
            if last is None or last[0] != iterations:
                if last is None or last[0][:-1] != outer or iteration <= last[0][-1]:
                    counts.append(0)
                counts[-1] += 1
                times.append(0.0)
                self._open[address] = iterations, len(times) - 1
            times[self._open[address][1]] += lasted

    def result(self) -> tuple[Iterations, ...]:
        return tuple(
            Iterations(address, tuple(self.counts[address]), (), tuple(times[:MOST_TIMES]))
            for address, times in self.times.items()
        )
