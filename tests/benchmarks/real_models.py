"""Times first and later runs of ONNX models against ONNX Runtime on one thread, in turns: ``python -m
tests.benchmarks.real_models [FILE or FOLDER ...]``.

Without files, the samples are written as ONNX. The last column is how much the function of the whole
graph gains over stepping, measured in the same rounds. CPU time of the process, medians of the
rounds' quotients.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import process_time_ns
from typing import Any

import numpy as np
import onnxruntime

import loopscope
from loopscope.errors import EngineError
from loopscope.executor.codegen import whole_graph
from loopscope_app.describe.random_inputs import lengths_by_trials, random_inputs

LATER_BARS = {"median": 4.0, "90th percentile": 10.0, "sum": 3.0}
FIRST_BARS = {"median": 1.5, "90th percentile": 3.0}
_SAMPLES = Path(__file__).parents[2] / "sample_models"
_ENDLESS = {"infinite_loop"}
_ROUNDS, _FIRST_ROUNDS = 7, 3
_LEAST_NANOSECONDS = 3_000_000
_NEVER = 10**9

Row = tuple[float, float, float, float]
"""First run / ONNX Runtime, later run / ONNX Runtime, and nanoseconds of both later runs."""


def samples(folder: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The samples that ONNX can express, with their first inputs."""
    for file in sorted(_SAMPLES.glob("*/model.xml")):
        target = folder / f"{file.parent.name}.onnx"
        inputs = min(file.parent.joinpath("inputs").glob("*.npz"), default=None)
        try:
            if inputs is None or file.parent.name in _ENDLESS:
                continue
            loopscope.write_model(loopscope.read_model(file), target)
        except EngineError:
            continue
        with np.load(inputs) as stored:
            yield target, dict(stored)


def chosen(names: Sequence[str]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The named files, with random inputs."""
    for path in map(Path, names):
        for file in sorted(path.rglob("*.onnx")) if path.is_dir() else [path]:
            model = loopscope.read_model(file)
            yield file, random_inputs(model, 0, lengths_by_trials(model, 0))


def runtime_session(file: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def nanoseconds(action: Callable[[], object], repeats: int = 1) -> float:
    start = process_time_ns()
    for _ in range(repeats):
        action()
    return (process_time_ns() - start) / repeats


def measured(file: Path, inputs: Mapping[str, Any]) -> Row:
    """Prints a line for a model."""
    fed = {name: np.asarray(value) for name, value in inputs.items()}
    first = [
        nanoseconds(lambda: loopscope.Session(loopscope.read_model(file)).run(inputs))
        / nanoseconds(lambda: runtime_session(file).run(None, fed))
        for _ in range(_FIRST_ROUNDS)
    ]
    theirs = runtime_session(file)
    stepping, ours = (loopscope.Session(loopscope.read_model(file)) for _ in range(2))
    shipped = whole_graph.STEPPED_RUNS

    def step() -> None:
        whole_graph.STEPPED_RUNS = _NEVER
        stepping.run(inputs)
        whole_graph.STEPPED_RUNS = shipped

    contenders = [lambda: ours.run(inputs), lambda: theirs.run(None, fed), step]
    for _ in range(shipped + 2):
        for contender in contenders:
            contender()
    repeats = [max(1, int(_LEAST_NANOSECONDS / nanoseconds(contender))) for contender in contenders]
    rounds = [
        [nanoseconds(*pair) for pair in zip(contenders, repeats, strict=True)]
        for _ in range(_ROUNDS)
    ]
    later = median(mine / other for mine, other, _ in rounds)
    gain = median(stepped / mine for mine, _, stepped in rounds)
    own, other = (median(column) for column in list(zip(*rounds, strict=True))[:2])
    print(
        f"{file.stem[:36]:37}{own / 1e3:10.1f} us{median(first):9.2f}{later:9.2f}{gain:9.2f}",
        flush=True,
    )
    return median(first), later, own, other


def summary(title: str, values: Mapping[str, float], bars: Mapping[str, float]) -> bool:
    """Prints figures beside their bars; whether one is missed."""
    for name, value in values.items():
        missed = "  MISSED" if value > bars[name] else ""
        print(f"{title}, {name:30}{value:8.2f}   bar {bars[name]:g}{missed}")
    return any(value > bars[name] for name, value in values.items())


def main(names: Sequence[str]) -> int:
    """Prints a line for each model and the figures of all; 1 when one misses its bar."""
    print(f"{'model':37}{'later run':>13}{'first':>9}{'later':>9}{'gain':>9}")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for file, inputs in chosen(names) if names else samples(Path(folder)):
            try:
                rows.append(measured(file, inputs))
            except Exception as error:  # the runtime refuses some models that are valid
                print(f"{file.stem[:36]:37} is left out: {str(error)[:60]}")
    firsts, laters, own, other = (np.array(column) for column in zip(*rows, strict=True))
    missed = summary(
        "opening and first run",
        {"median": float(np.median(firsts)), "90th percentile": float(np.percentile(firsts, 90))},
        FIRST_BARS,
    )
    missed |= summary(
        "later runs",
        {
            "median": float(np.median(laters)),
            "90th percentile": float(np.percentile(laters, 90)),
            "sum": float(own.sum() / other.sum()),
        },
        LATER_BARS,
    )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
