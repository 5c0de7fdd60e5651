"""Times sweeps of collatz against plain loops over other runtimes: ``python -m tests.benchmarks.sweep [NUMBERS]``.

Wall-clock time for each input, and the ratios that the design asks for. The plain loops record nothing; a row of a sweep has counts,
endings and branches.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

import engine

COLLATZ = """
<ir_version: 8, opset_import: ["" : 17]>
collatz (int64 number) => (int64 last, int64 steps)
<int64 one = {1}, int64 two = {2}, int64 three = {3}, int64 zero = {0}>
{
  same = Equal (number, one)
  start = Not (same)
  last, steps = Loop <body = body (int64 i, bool go, int64 n, int64 s) => (bool on, int64 m, int64 t) {
    rest = Mod (n, two)
    even = Equal (rest, zero)
    m = If (even) <
      then_branch = then () => (int64 half) { half = Div (n, two) },
      else_branch = other () => (int64 more) { triple = Mul (n, three) more = Add (triple, one) }
    >
    t = Add (s, one)
    ended = Equal (m, one)
    on = Not (ended)
  }> ("", start, number, zero)
}
"""


def main() -> None:
    """Prints a line for each way, and the ratios."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    model = engine.read_model(Path("sample_models/collatz/model.xml"))
    plain = onnx.parser.parse_model(COLLATZ)
    session = onnxruntime.InferenceSession(plain.SerializeToString(), providers=["CPUExecutionProvider"])
    evaluator = ReferenceEvaluator(plain)
    assert int(session.run(["steps"], {"number": np.array(27)})[0]) == int(next(iter(engine.sweep(model, "number=27")))["output steps"])
    few = min(count, 1000)
    ways: dict[str, tuple[int, Callable[[int], object]]] = {
        "onnxruntime, plain loop": (count, lambda n: [session.run(["steps"], {"number": np.array(one)}) for one in range(1, n + 1)]),
        "onnx.reference, plain loop": (
            few // 10,
            lambda n: [evaluator.run(["steps"], {"number": np.array(one)}) for one in range(1, n + 1)],
        ),
        "sweep in lanes": (count, lambda n: engine.sweep(model, f"number=1..{n}", workers=1).run()),
        "sweep one by one": (few, lambda n: engine.sweep(model, f"number=1..{n}", workers=1, lanes=False).run()),
        "sweep one by one, 2 processes": (count, lambda n: engine.sweep(model, f"number=1..{n}", workers=2, lanes=False).run()),
    }
    seconds = {name: _timed(run, amount) / amount for name, (amount, run) in ways.items()}
    for name, one in seconds.items():
        print(f"{name:32} {one * 1e6:10.1f} us an input")
    reference = seconds["onnxruntime, plain loop"]
    for name in ("sweep in lanes", "sweep one by one, 2 processes"):
        print(f"{name} / onnxruntime: {seconds[name] / reference:.2f} (at most 3)")
    print(f"one by one / in lanes: {seconds['sweep one by one'] / seconds['sweep in lanes']:.0f} (at least 50)")
    print(f"most memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def _timed(run: Callable[[int], object], amount: int) -> float:
    run(min(amount, 100))
    begun = perf_counter()
    run(amount)
    return perf_counter() - begun


if __name__ == "__main__":
    main()
