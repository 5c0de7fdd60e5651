"""Times the gradient of 1,000 steps of an LSTM cell of 256 against its forward run: ``python -m
tests.benchmarks.gradients``.

One thread, CPU time, median of rounds in turns; beside torch on the same work where it is
installed.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported

import importlib
import importlib.util
import tracemalloc
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import numpy as np

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.builder.tensor import Tensor

STEPS, SIZE, BATCH = 1000, 256, 1
BAR = 4.0
_ROUNDS = 5
_GATES = ("input", "forget", "cell", "output")


def model() -> loopscope.Model:
    """The sum of the last hidden state, of the gates written out."""
    graph = builder.Graph("lstm")
    xs = graph.parameter("xs", "f32", [STEPS, BATCH, SIZE])
    zeros = np.zeros((BATCH, SIZE), np.float32)
    of_x = {name: graph.parameter(f"{name}_w", "f32", [SIZE, SIZE]) for name in _GATES}
    of_h = {name: graph.parameter(f"{name}_r", "f32", [SIZE, SIZE]) for name in _GATES}

    def step(state: Any, x: Tensor) -> Any:
        h, c = state
        gate = {name: x @ of_x[name] + h @ of_h[name] for name in _GATES}
        c = ops.sigmoid(gate["forget"]) * c + ops.sigmoid(gate["input"]) * ops.tanh(gate["cell"])
        return ops.sigmoid(gate["output"]) * ops.tanh(c), c

    h, _ = builder.foldl(step, xs, (zeros, zeros))
    return graph.model({"loss": ops.reduce_sum(h, [0, 1])})


def feeds() -> list[np.ndarray]:
    random = np.random.default_rng(0)
    shapes = [(STEPS, BATCH, SIZE), *[(SIZE, SIZE)] * 8]
    return [random.normal(0, 0.05, shape).astype(np.float32) for shape in shapes]


def seconds(run: Callable[[], object]) -> float:
    begin = process_time()
    run()
    return process_time() - begin


def in_torch(arrays: list[np.ndarray]) -> tuple[Callable[[], object], Callable[[], object]]:
    """Forward without a tape; forward and backward."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(1)
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]

    def forward() -> Any:
        xs, *rest = tensors
        w, r = rest[:4], rest[4:]
        h = c = torch.zeros(BATCH, SIZE)
        for x in xs:
            i, f, g, o = (x @ one + h @ other for one, other in zip(w, r, strict=True))
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h.sum()

    def untaped() -> object:
        with torch.no_grad():
            return forward()

    return untaped, lambda: torch.autograd.grad(forward(), tensors)


def main() -> None:
    forward = model()
    arrays = feeds()
    names = [one.name for one in forward.inputs]
    backward = loopscope.gradients(forward, "loss", names)
    runs: dict[str, Callable[[], object]] = {
        "forward": lambda: loopscope.run(forward, arrays),
        "gradient": lambda: loopscope.run(backward, arrays),
    }
    if importlib.util.find_spec("torch"):
        runs["torch forward"], runs["torch gradient"] = in_torch(arrays)
    else:
        print("torch is not installed: nothing stands beside")
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(_ROUNDS):
        for name, run in runs.items():
            times[name].append(seconds(run))
    for name, found in times.items():
        print(f"{name:15} {median(found):7.3f} s")
    ratio = median(
        one / other for one, other in zip(times["gradient"], times["forward"], strict=True)
    )
    print(
        f"gradient / forward: {ratio:.2f} (at most {BAR}: {'met' if ratio <= BAR else 'NOT MET'})"
    )
    tracemalloc.start()
    runs["gradient"]()
    most = tracemalloc.get_traced_memory()[1]
    carried = 2 * STEPS * BATCH * SIZE * 4
    print(
        f"most memory of a gradient run: {most / 2**20:.1f} MB; what is carried: {carried / 2**20:.1f} MB"
    )


if __name__ == "__main__":
    main()
