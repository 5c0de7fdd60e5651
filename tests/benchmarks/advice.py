"""Cost of what ``loopscope check`` advises against: each loop beside the form that the advice
recommends, in the same runtime and process.

python -m tests.benchmarks.advice                 # all
python -m tests.benchmarks.advice growing-state   # one rule
"""

from __future__ import annotations

import io
import itertools
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnxruntime
import openvino
from onnx import TensorProto, helper, numpy_helper

Arrays = Mapping[str, np.ndarray]
Pair = tuple[bytes, bytes, Arrays]
"""A model that a rule reports, the recommended form, and the inputs of both."""

Run = Callable[[], list[np.ndarray]]

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
STEPS, WIDTH = 256, 64
_ROUNDS = 7


def main(names: list[str]) -> None:
    """Print the time of each form and their ratio in each runtime; fail if the outputs differ."""
    print(f"one thread, fastest of {_ROUNDS}; milliseconds as reported, as recommended, ratio")
    for name in names or PAIRS:
        reported, recommended, inputs = PAIRS[name]()
        for runtime, run in RUNTIMES.items():
            try:
                forms = [run(model, inputs) for model in (reported, recommended)]
            except RuntimeError:  # OpenVINO's frontend does not convert every Scan
                print(f"{name:<21} {runtime:<22} does not load one of the forms")
                continue
            (slow, expected), (fast, outputs) = map(_fastest, forms)
            for left, right in zip(expected, outputs, strict=True):
                np.testing.assert_allclose(left, right, rtol=2e-4, atol=2e-5)
            times = f"{slow * 1e3:9.3f} {fast * 1e3:9.3f} {slow / fast:6.1f}"
            print(f"{name:<21} {runtime:<22} {times}")


def _fastest(run: Run) -> tuple[float, list[np.ndarray]]:
    outputs = run()
    times = []
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return min(times), outputs


def _onnxruntime(model: bytes, inputs: Arrays) -> Run:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = {entry.name: inputs[entry.name] for entry in session.get_inputs()}
    return lambda: list(session.run(None, feeds))


def _openvino(model: bytes, inputs: Arrays) -> Run:
    options = {"INFERENCE_NUM_THREADS": "1", "INFERENCE_PRECISION_HINT": "f32"}
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(io.BytesIO(model)), "CPU", options)
    request = compiled.create_infer_request()
    feeds = {name: inputs[name] for entry in compiled.inputs for name in entry.names}

    def run() -> list[np.ndarray]:
        request.infer(feeds)
        return [request.get_output_tensor(number).data for number in range(len(compiled.outputs))]

    return run


RUNTIMES: Mapping[str, Callable[[bytes, Arrays], Run]] = {
    f"ONNX Runtime {onnxruntime.__version__}": _onnxruntime,
    f"OpenVINO {openvino.__version__.partition('-')[0]}": _openvino,
}


def known_recurrence() -> Pair:
    """An LSTM as a Scan of one step per token, and the operator LSTM."""
    random = np.random.default_rng(0)
    weight, recurrence = (
        random.normal(0, 0.1, (4 * WIDTH, WIDTH)).astype(np.float32) for _ in range(2)
    )
    x = random.normal(0, 1, (STEPS, 1, WIDTH)).astype(np.float32)
    body = helper.make_graph(
        [
            _node("MatMul", ["x", "wt"], ["xw"]),
            _node("MatMul", ["h", "rt"], ["hr"]),
            _node("Add", ["xw", "hr"], ["gates"]),
            _node("Split", ["gates"], ["i", "o", "f", "g"], axis=1, num_outputs=4),
            *(_node("Sigmoid", [name], [f"s{name}"]) for name in "iof"),
            _node("Tanh", ["g"], ["tg"]),
            _node("Mul", ["sf", "c"], ["kept"]),
            _node("Mul", ["si", "tg"], ["added"]),
            _node("Add", ["kept", "added"], ["c_out"]),
            _node("Tanh", ["c_out"], ["tc"]),
            _node("Mul", ["so", "tc"], ["h_out"]),
            _node("Identity", ["h_out"], ["y"]),
        ],
        "step",
        [_value(name, [1, WIDTH]) for name in ("h", "c", "x")],
        [_value(name, [1, WIDTH]) for name in ("h_out", "c_out", "y")],
    )
    state = np.zeros((1, WIDTH), np.float32)
    scan = _model(
        [
            _node(
                "Scan",
                ["zero", "zero", "input"],
                ["h_last", "c_last", "states"],
                body=body,
                num_scan_inputs=1,
            )
        ],
        {"input": x},
        {"states": [STEPS, 1, WIDTH]},
        {"zero": state, "wt": weight.T.copy(), "rt": recurrence.T.copy()},
    )
    operator = _model(
        [
            _node("LSTM", ["input", "w", "r"], ["all"], hidden_size=WIDTH),
            _node("Squeeze", ["all", "axis"], ["states"]),
        ],
        {"input": x},
        {"states": [STEPS, 1, WIDTH]},
        {"w": weight[None], "r": recurrence[None], "axis": np.array([1])},
    )
    return scan, operator, {"input": x}


def invariant_work() -> Pair:
    """A matrix product in a body that does not depend on the iteration, and the same before."""
    random = np.random.default_rng(1)
    matrix = random.normal(0, 0.1, (WIDTH, WIDTH)).astype(np.float32)
    inputs = {"x": random.normal(0, 1, (STEPS, 1, WIDTH)).astype(np.float32), "context": matrix}

    def body(inside: list[Any], name: str) -> Any:
        return helper.make_graph(
            [
                *inside,
                _node("MatMul", ["row", name], ["product"]),
                _node("Add", ["state", "product"], ["sum"]),
                _node("Tanh", ["sum"], ["next"]),
                _node("Identity", ["next"], ["y"]),
            ],
            "step",
            [_value("state", [1, WIDTH]), _value("row", [1, WIDTH])],
            [_value("next", [1, WIDTH]), _value("y", [1, WIDTH])],
        )

    product = _node("MatMul", ["context", "matrix"], ["invariant"])
    models = []
    for outside, inside in (([], [product]), ([product], [])):
        scan = _node(
            "Scan",
            ["zero", "x"],
            ["last", "states"],
            body=body(inside, "invariant"),
            num_scan_inputs=1,
        )
        models.append(
            _model(
                [*outside, scan],
                inputs,
                {"states": [STEPS, 1, WIDTH]},
                {"zero": np.zeros((1, WIDTH), np.float32), "matrix": matrix},
            )
        )
    return models[0], models[1], inputs


def growing_state() -> Pair:
    """A carried tensor that grows by Concat in each iteration, and a collected output."""
    count = np.array(4 * STEPS)
    step = np.ones((1, 4 * WIDTH), np.float32)
    grow = helper.make_graph(
        [
            _node("Cast", ["i"], ["number"], to=FLOAT),
            _node("Mul", ["step", "number"], ["row"]),
            _node("Concat", ["rows", "row"], ["more"], axis=0),
            _node("Identity", ["again"], ["again_out"]),
        ],
        "step",
        [_value("i", [], INT64), _value("again", [], BOOL), _value("rows", [None, 4 * WIDTH])],
        [_value("again_out", [], BOOL), _value("more", [None, 4 * WIDTH])],
    )
    collect = helper.make_graph(
        [
            _node("Cast", ["i"], ["number"], to=FLOAT),
            _node("Mul", ["flat", "number"], ["row"]),
            _node("Identity", ["again"], ["again_out"]),
        ],
        "step",
        [_value("i", [], INT64), _value("again", [], BOOL)],
        [_value("again_out", [], BOOL), _value("row", [4 * WIDTH])],
    )
    constants = {
        "count": count,
        "go": np.array(True),
        "none": np.zeros((0, 4 * WIDTH), np.float32),
    }
    growing = _model(
        [_node("Loop", ["count", "go", "none"], ["all"], body=grow)],
        {"step": step},
        {"all": [None, 4 * WIDTH]},
        constants,
    )
    collected = _model(
        [
            _node("Squeeze", ["step", "axis"], ["flat"]),
            _node("Loop", ["count", "go"], ["all"], body=collect),
        ],
        {"step": step},
        {"all": [None, 4 * WIDTH]},
        {**constants, "axis": np.array([0])},
    )
    return growing, collected, {"step": step}


def constant_loop() -> Pair:
    """A loop of 8 iterations with a constant count, and its body 8 times."""
    count, x = 8, np.linspace(0.1, 1, WIDTH, dtype=np.float32)
    body = helper.make_graph(
        [
            _node("Mul", ["state", "state"], ["square"]),
            _node("Sub", ["state", "square"], ["next"]),
            _node("Identity", ["again"], ["again_out"]),
        ],
        "step",
        [_value("i", [], INT64), _value("again", [], BOOL), _value("state", [WIDTH])],
        [_value("again_out", [], BOOL), _value("next", [WIDTH])],
    )
    loop = _model(
        [_node("Loop", ["count", "go", "x"], ["y"], body=body)],
        {"x": x},
        {"y": [WIDTH]},
        {"count": np.array(count), "go": np.array(True)},
    )
    names = ["x", *(f"x{number}" for number in range(1, count)), "y"]
    unrolled = [
        node
        for number, (state, following) in enumerate(itertools.pairwise(names))
        for node in (
            _node("Mul", [state, state], [f"square{number}"]),
            _node("Sub", [state, f"square{number}"], [following]),
        )
    ]
    return loop, _model(unrolled, {"x": x}, {"y": [WIDTH]}, {}), {"x": x}


def unfused_surroundings() -> Pair:
    """A body that reads the product inside MatMul and Add, and one that reads their sum."""
    random = np.random.default_rng(2)
    x = random.normal(0, 0.1, (STEPS, WIDTH)).astype(np.float32)
    weights = {
        f"w{number}": random.normal(0, 0.1, (WIDTH, WIDTH)).astype(np.float32)
        for number in range(8)
    }
    bias = np.full(WIDTH, 1e-7, np.float32)  # small: both forms have equal results

    def model(read: str) -> bytes:
        chain, state = [], "x"
        for number in range(8):
            chain += [
                _node("MatMul", [state, f"w{number}"], [f"product{number}"]),
                _node("Add", [f"product{number}", "bias"], [f"sum{number}"]),
            ]
            state = f"sum{number}"
        reads = [f"{read}{number}" for number in range(8)]
        body = helper.make_graph(
            [
                _node("Sum", ["state", *(f"first_{name}" for name in reads)], ["next"]),
                *(_node("ReduceMax", [name], [f"first_{name}"], keepdims=0) for name in reads),
                _node("Identity", ["again"], ["again_out"]),
            ][::-1],
            "step",
            [_value("i", [], INT64), _value("again", [], BOOL), _value("state", [])],
            [_value("again_out", [], BOOL), _value("next", [])],
        )
        return _model(
            [*chain, _node("Loop", ["count", "go", "zero"], ["total"], body=body)],
            {"x": x},
            {"total": [], "sum7": [STEPS, WIDTH]},
            {
                **weights,
                "bias": bias,
                "count": np.array(1),
                "go": np.array(True),
                "zero": np.float32(0),
            },
        )

    return model("product"), model("sum"), {"x": x}


def _node(operation: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
    return helper.make_node(operation, inputs, outputs, **attributes)


def _value(name: str, shape: list[int | None], element_type: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, element_type, shape)


def _model(
    nodes: list[Any],
    inputs: Arrays,
    outputs: Mapping[str, list[int | None]],
    constants: Mapping[str, Any],
) -> bytes:
    graph = helper.make_graph(
        nodes,
        "main",
        [_value(name, list(array.shape)) for name, array in inputs.items()],
        [_value(name, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return bytes(model.SerializeToString())


PAIRS: Mapping[str, Callable[[], Pair]] = {
    "known-recurrence": known_recurrence,
    "invariant-work": invariant_work,
    "growing-state": growing_state,
    "constant-loop": constant_loop,
    "unfused-surroundings": unfused_surroundings,
}

if __name__ == "__main__":
    main(sys.argv[1:])
