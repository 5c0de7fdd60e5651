"""Times loops against numpy by hand and other runtimes, in turns, on one thread: ``python -m
tests.benchmarks.loops [a b c d e time]``.

CPU time of the process, so that other work on the machine matters less; ratios within each round,
medians over rounds. Prints a table with the bar of each row and whether it is met; what a missing
package would have measured is left out with a line saying so.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported

import gc
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

import loopscope
from loopscope.checks.check import checked
from loopscope.executor.plan.planner import plan_checked
from loopscope.explain.history import history
from loopscope.ops.catalogue import CATALOGUE
from loopscope_app.state.process_memory import keep_freed_memory
from tests.benchmarks.loop_models import Case, cases, scalars
from tests.engine.drafts import F32, Draft

_ROUNDS = 9
_SHORT = 0.03
_REFERENCE = "onnx.reference"
_EVERYTHING = loopscope.Record(everything=True, budget_bytes=2**32)

BARS: dict[str, dict[str, float]] = {
    "unrecorded / numpy": {"a": 1.15, "b": 1.15, "c": 1.2, "d": 1.3, "e": 1.05},
    "default / unrecorded": {"a": 1.5, "b": 1.3, "c": 1.3, "d": 1.5, "e": 1.3},
    "everything / unrecorded": {"a": 2.2, "b": 1.4, "c": 1.6, "d": 2.4, "e": 1.3},
    "onnx.reference / everything": {"a": 200, "b": 20, "c": 5, "d": 200},
    "ONNX Runtime / everything": {"a": 5, "d": 5},
    "OpenVINO / everything": {"a": 5, "d": 5},
}
"""Bars of the ratios; those in which we are the divisor must be reached, the others kept below."""


def contenders(case: Case, rounds: int) -> dict[str, Callable[[], Any]]:
    """What runs in turns, by name."""
    session = loopscope.Session(case.ours)
    found: dict[str, Callable[[], Any]] = {
        "numpy": lambda: case.by_hand(*case.inputs),
        "unrecorded": lambda: session.run(case.inputs).outputs[0],
        "default": lambda: recorded(case, loopscope.Record()).result.outputs[0],
        "everything": lambda: recorded(case, _EVERYTHING).result.outputs[0],
    }
    feeds = {f"x{number}": array for number, array in enumerate(case.inputs)}
    for name, make in (
        ("ONNX Runtime", _onnx_runtime),
        ("OpenVINO", _openvino),
        (_REFERENCE, _reference),
    ):
        try:
            found[name] = make(case, feeds)
        except ImportError as missing:
            print(f"   {name} is left out: {missing}")
    return found


def recorded(case: Case, record: loopscope.Record) -> loopscope.Debugger:
    debugger = loopscope.Debugger(case.ours, case.inputs, record=record)
    debugger.run()
    return debugger


def _onnx_runtime(case: Case, feeds: dict[str, np.ndarray]) -> Callable[[], Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        case.onnx(case.iterations).SerializeToString(), options, ["CPUExecutionProvider"]
    )
    return lambda: session.run(None, feeds)[0]


def _openvino(case: Case, feeds: dict[str, np.ndarray]) -> Callable[[], Any]:
    import openvino

    config = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
    }
    core = openvino.Core()
    model = core.read_model(case.onnx(case.iterations).SerializeToString())
    request = core.compile_model(model, "CPU", config).create_infer_request()
    return lambda: np.array(request.infer(feeds)[0])


def _reference(case: Case, feeds: dict[str, np.ndarray]) -> Callable[[], Any]:
    """So slow that it runs fewer iterations, and its time is scaled."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(case.onnx(min(case.few, case.iterations)))
    every: Any = None
    return lambda: next(iter(evaluator.run(every, feeds)))


def timed(action: Callable[[], Any], repeats: int = 1) -> float:
    """Seconds of processor time that so many runs take."""
    started = process_time()
    for _ in range(repeats):
        action()
    return process_time() - started


def compare(case: Case, rounds: int) -> None:
    """Prints the rows of one model."""
    print(f"\n== {case.name}: {case.text}")
    found = contenders(case, rounds)
    expected = np.asarray(found["numpy"]())
    for name, action in found.items():
        value = np.asarray(action())
        scale = max(float(np.abs(expected).max()), 1e-30)
        error = float(np.abs(value - expected).max()) / scale
        if error > 1e-3 and name != _REFERENCE:
            print(f"   {name} differs from numpy by {error:.1e}")
    repeats = {
        name: max(1, round(_SHORT / max(timed(action), 1e-6))) for name, action in found.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(rounds):
        for name, action in found.items():
            gc.collect()
            scale = case.iterations / min(case.few, case.iterations) if name == _REFERENCE else 1
            seconds[name].append(timed(action, repeats[name]) / repeats[name] * scale)
    calls = case.iterations * case.operations
    for name, each in seconds.items():
        print(
            f"   {name:28s}{median(each) * 1e3:10.2f} ms{median(each) / calls * 1e9:12.1f} ns per operation"
        )
    for title, bars in BARS.items():
        one, other = title.split(" / ")
        if one in seconds:
            ratio = median(a / b for a, b in zip(seconds[one], seconds[other], strict=True))
            row(title, ratio, bars.get(case.name), other == "everything")
    _bytes(case)


def row(
    title: str, value: float, bar: float | None, at_least: bool = False, unit: str = ""
) -> None:
    """One line: what, how much, the bar, met or missed."""
    if bar is None:
        print(f"   {title:44s}{value:10.2f}{unit}")
        return
    met = value >= bar if at_least else value <= bar
    print(
        f"   {title:44s}{value:10.2f}{unit}   bar {'>=' if at_least else '<='} {bar:g}{unit}  {'met' if met else 'MISSED'}"
    )


def _bytes(case: Case) -> None:
    debugger = recorded(case, _EVERYTHING)
    recording = debugger.machine.recording
    recording.pack()
    columns = [column for rows in recording.rows.values() for column in rows.columns.values()]
    if case.scalar:
        row(
            "bytes recorded for each scalar",
            recording.bytes / sum(column.packed for column in columns),
            4,
        )
        return
    payload = 0
    for rows in recording.rows.values():
        for slot, column in rows.columns.items():
            payload += column.packed * np.asarray(debugger.machine.values[slot]).nbytes
    row("bytes recorded / payload", recording.bytes / payload, 1.1)


def time_travel() -> None:
    """Seeking, histories, stepping and planning."""
    print("\n== time travel in a run of 1,000,000 iterations of model a, and plans")
    case = scalars(1_000_000)
    debugger = loopscope.Debugger(
        case.ours, case.inputs, record=loopscope.Record(budget_bytes=64 * 2**20)
    )
    debugger.run()
    random = np.random.default_rng(1)
    took = []
    for iteration in random.integers(0, 1_000_000, 300).tolist():
        started = perf_counter()
        address = f"main/loop[{iteration}]/body/Mul"
        debugger.seek(address)
        debugger.value(f"main/loop[{iteration}]/body/Add")
        took.append((perf_counter() - started) * 1e3)
    row("any iteration: seek and value, median", float(np.median(took)), 1, unit=" ms")
    row(
        "any iteration: seek and value, 95th percentile",
        float(np.percentile(took, 95)),
        5,
        unit=" ms",
    )
    row("trace", debugger.machine.recording.bytes / 2**20, 64, unit=" MB")
    took = []
    for _ in range(5):
        started = perf_counter()
        history(debugger, "main/loop/body/Add")
        took.append((perf_counter() - started) * 1e3)
    row("an interior value over all iterations", median(took), 50, unit=" ms")
    row("step with its event", _step_microseconds(), 20, unit=" us")
    row(
        "plan of 10,000 layers",
        _plan_seconds(lambda model: plan_checked(checked(model, CATALOGUE), CATALOGUE)),
        None,
        unit=" s, checks included",
    )
    model = checked(_chain(), CATALOGUE)
    row(
        "plan of 10,000 layers",
        _plan_seconds(lambda _: plan_checked(model, CATALOGUE)),
        0.3,
        unit=" s",
    )


def _step_microseconds() -> float:
    """One step of the debugger, without what numpy itself takes."""
    case = scalars(100_000)
    own = []
    for _ in range(5):
        debugger = loopscope.Debugger(case.ours, case.inputs)
        for _ in range(100):
            debugger.step()
        started = process_time()
        for _ in range(2000):
            debugger.step()
        own.append((process_time() - started) / 2000 * 1e6)
    return median(own)


def _plan_seconds(action: Callable[[loopscope.Model], Any]) -> float:
    took = []
    for _ in range(5):
        model = _chain()
        started = process_time()
        action(model)
        took.append(process_time() - started)
    return median(took)


def _chain() -> loopscope.Model:
    draft = Draft()
    value = draft.parameter("x", F32, (4,))
    one = draft.const([1.0, 2.0, 3.0, 4.0])
    for number in range(9_998):
        value = draft.op(("Add", "Multiply", "Maximum")[number % 3], value, one)
    draft.result(value)
    return draft.model()


def main(chosen: list[str], rounds: int = _ROUNDS) -> None:
    keep_freed_memory()  # as the command does, for all contenders
    for case in cases():
        if not chosen or case.name in chosen:
            compare(case, rounds)
    if not chosen or "time" in chosen:
        time_travel()


if __name__ == "__main__":
    main(sys.argv[1:])
