"""Times one run of a planned model against ONNX Runtime on one thread: ``python -m
tests.benchmarks.planned_run [MODEL [INPUTS.npz]]``.

Without a file, a hundred small operations and eight Ifs: what counts there is what a run, an
operation and a branch cost beside the arithmetic. A call of numpy alone takes as long as an
operation of 64 elements in ONNX Runtime, so these two miss the bar, which is of models with work to
do, such as a detector of voice.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnx.parser import parse_model

import loopscope
from loopscope_app.describe.random_inputs import lengths_by_trials, random_inputs
from tests.benchmarks.kernels import printed_row

_BAR = 2.5


def made() -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    """Models of small operations, by name, with their inputs."""
    chain = "\n".join(
        f"v{number + 1} = {('Relu', 'Sigmoid', 'Neg', 'Tanh')[number % 4]} (v{number})"
        for number in range(100)
    )
    head = '<ir_version: 9, opset_import: ["" : 18]>\n'
    small = {"v0": np.linspace(-1, 1, 64, dtype=np.float32)}
    yield (
        "elementwise",
        parse_model(
            f"{head}main (float[64] v0) => (float[64] v100) {{ {chain} }}"
        ).SerializeToString(),
        small,
    )
    inside = "y = Add (v0, v0)"
    for level in range(8):
        inside = (
            f"y = If (go) <then_branch = yes{level} () => (float[64] r{level}) {{ {inside.replace('y =', f'r{level} =', 1)} }}, "
            f"else_branch = no{level} () => (float[64] s{level}) {{ s{level} = Neg (v0) }}>"
        )
    nested = f"{head}main (bool go, float[64] v0) => (float[64] y) {{ {inside} }}"
    yield "nested Ifs", parse_model(nested).SerializeToString(), {"go": np.array(True), **small}


def measured(title: str, document: bytes, given: Mapping[str, Any]) -> bool:
    """Prints a line for a model; whether it missed the bar."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    theirs = onnxruntime.InferenceSession(document, options)
    ours = loopscope.Session(loopscope.read_model(document))
    ours.run(given)
    fed = {name: np.asarray(value) for name, value in given.items()}
    return printed_row(title, [lambda: ours.run(given), lambda: theirs.run(None, fed)], _BAR)


def main(files: list[str]) -> int:
    """Prints a line for each model; 1 when one misses the bar."""
    print(f"{'one planned run':34}{'ours':>11}{'x ORT':>12}{'bar':>6}")
    if not files:
        return max([int(measured(*one)) for one in made()])
    path = Path(files[0])
    model = loopscope.read_model(path)
    given = (
        dict(np.load(files[1]))
        if len(files) > 1
        else random_inputs(model, 0, lengths_by_trials(model, 0))
    )
    return int(measured(path.name, path.read_bytes(), given))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
