"""Cost of traces: ``python -m tests.benchmarks.traces`` prints processor times of short calls.

Targets: at most 50 ns for a call of a disabled trace, 1 us for a recorded number, 1.3 times the copy
of a 1 MB tensor, and 2 s to open 10,000 iterations with 50 values each.
"""

from __future__ import annotations

import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import loopscope
from loopscope.tracing import IDLE, Recorder

_CALLS = 200_000
_TENSORS = 100
_ITERATIONS, _VALUES = 10_000, 50


def nanoseconds(statement: str, **names: Any) -> float:
    """Return the processor time of a statement without the loop around it."""
    times = [
        min(timeit.repeat(text, globals=names, number=_CALLS, repeat=7, timer=time.process_time))
        for text in (statement, "pass")
    ]
    return (times[0] - times[1]) / _CALLS * 1e9


def main() -> None:
    print(f"an empty function {nanoseconds('f(x=x)', f=lambda **names: None, x=1):23.0f} ns")
    for call in ("record(x=x)", "branch('stop', x)", "iterations('loop', x)", "loop('loop')"):
        print(f"disabled {call:24} {nanoseconds(f'trace.{call}', trace=IDLE, x=1):8.0f} ns")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.loopscope"
        with loopscope.trace(path) as trace:
            for _ in trace.iterations("loop", range(1)):
                print(f"a number {nanoseconds('trace.record(x=x)', trace=trace, x=0.5):32.0f} ns")
        _measure_tensor(path)
        _measure_opening(path)


def _measure_tensor(path: Path) -> None:
    """Print the times that a program waits to record, copy and write a tensor of 1 MB.

    The program computes between two records, as a model does, while a thread writes.
    """
    tensor, factor = np.random.default_rng(0).random(1 << 18, np.float32), np.ones((300, 300))
    with loopscope.trace(path) as trace, path.with_suffix(".bin").open("wb", buffering=0) as file:
        actions: tuple[Callable[[], object], ...] = (
            lambda: trace.record(x=tensor),
            tensor.copy,
            lambda: file.write(tensor.data),
        )
        times = np.empty((_TENSORS, len(actions)))
        for row in trace.iterations("loop", range(_TENSORS)):
            for column, action in enumerate(actions):
                factor @ factor
                start = time.perf_counter()
                action()
                times[row, column] = time.perf_counter() - start
    recorded, copied, written = np.median(times, axis=0)
    print(f"a tensor of 1 MB {recorded * 1e6:24.0f} us")
    print(f"  to its copy in memory {recorded / copied:17.2f} times ({copied * 1e6:.0f} us)")
    print(f"  to its copy in a file {recorded / written:17.2f} times ({written * 1e6:.0f} us)")


def _measure_opening(path: Path) -> None:
    trace = loopscope.trace(path)
    assert isinstance(trace, Recorder)
    with trace:
        for step in trace.iterations("loop", range(_ITERATIONS)):
            trace.record_values({f"v{number}": step * 0.5 + number for number in range(_VALUES)})
    start = time.process_time()
    run = loopscope.load(path)
    seconds = time.process_time() - start
    assert run.control_flow[0].iterations == _ITERATIONS
    print(f"open {_ITERATIONS:,} x {_VALUES} values {seconds:18.2f} s")


if __name__ == "__main__":
    main()
