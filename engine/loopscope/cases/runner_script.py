"""Scripts that run a case in ONNX Runtime or OpenVINO without Loopscope."""

from __future__ import annotations

from typing import Literal

Goal = Literal["compare", "nan", "fails", "test"]
"""Purpose of a script: compare with the expected outputs, look for NaN, or show the failure.

For a failing test it compares too, because only Loopscope verifies the expectation.
"""

_HEAD = '''"""{title}

Needs numpy and {package}: pip install numpy {package}
"""

import sys
from pathlib import Path

import numpy as np
import {package}

FOLDER = Path(__file__).resolve().parent
'''

_ONNXRUNTIME = '''
def run(inputs):
    """Return the outputs of model.onnx by name."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if "--unoptimized" in sys.argv:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        str(FOLDER / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    feeds = {{port.name: inputs[port.name] for port in session.get_inputs()}}
    names = [port.name for port in session.get_outputs()]
    return dict(zip(names, {outputs}))


print("ONNX Runtime", onnxruntime.__version__)
'''

_IMPORT_VALUES = """
import onnxruntime_values

"""
_ARRAYS, _VALUES = "session.run(names, feeds)", "onnxruntime_values.outputs(session, feeds)"
"""Outputs of a session as arrays, and with values that are not arrays of numpy's types."""

_OPENVINO = '''
def run(inputs):
    """Return the outputs of {file} by name."""
    model = openvino.Core().read_model(str(FOLDER / "{file}"))
    compiled = openvino.compile_model(model, "CPU", {{"INFERENCE_PRECISION_HINT": "f32"}})
    request = compiled.create_infer_request()
    request.infer(
        {{
            number: inputs[{name}]
            for number, port in enumerate(model.inputs)
        }}
    )
    return {{
        {output_name}: request.get_output_tensor(number).data
        for number, port in enumerate(compiled.outputs)
    }}


print("OpenVINO", openvino.get_version())
'''

_LOAD = """with np.load(FOLDER / "inputs.npz", allow_pickle=False) as file:
    inputs = {name: file[name] for name in file.files}
"""
_LOAD_VALUES = """inputs = onnxruntime_values.read(str(FOLDER / "inputs.npz"))
"""

_COMPARE = '''
TOLERANCE = {tolerance!r}
"""Relative to the largest magnitude in an output."""


def difference(expected, actual):
    """Return a description of the first difference; empty if the values agree."""
    if isinstance(expected, list):
        if not isinstance(actual, list):
            return f"expected a list of {{len(expected)}} elements, got a {{type(actual).__name__}}"
        if len(expected) != len(actual):
            return f"expected {{len(expected)}} elements, got {{len(actual)}}"
        return next(filter(None, map(difference, expected, actual)), "")
    if expected is None or actual is None:
        if expected is actual:
            return ""
        return "expected no value, got one" if expected is None else "expected a value, got none"
    expected, actual = np.asarray(expected), np.asarray(actual)
    if expected.shape != actual.shape:
        return f"expected shape {{list(expected.shape)}}, got {{list(actual.shape)}}"
    if expected.dtype.kind in "fV":
        left, right = expected.astype(np.float64), actual.astype(np.float64)
        scale = np.abs(left[np.isfinite(left)]).max(initial=0.0)
        with np.errstate(invalid="ignore"):
            agree = (left == right) | (np.isnan(left) & np.isnan(right))
            agree |= np.abs(left - right) <= TOLERANCE * scale
    else:
        agree = expected == actual
    wrong = np.argwhere(~np.asarray(agree))
    if not len(wrong):
        return ""
    index = tuple(wrong[0])
    count = f"{{len(wrong)}} of {{expected.size}} elements differ"
    place = f", the first at {{[int(number) for number in index]}}" if index else ""
    return f"{{count}}{{place}}: expected {{expected[index]}}, got {{actual[index]}}"


{load_expected}
actual = run(inputs)
differences = {{name: difference(expected[name], actual[name]) for name in expected}}
for number, (name, words) in enumerate(differences.items()):
    print(f"output {{number}} {{name!r}}:", words or "agrees")
sys.exit(any(differences.values()))
'''
_LOAD_EXPECTED = """with np.load(FOLDER / "expected.npz", allow_pickle=False) as file:
    expected = {name: file[name] for name in file.files}
"""
_LOAD_EXPECTED_VALUES = """expected = onnxruntime_values.read(str(FOLDER / "expected.npz"))
"""

_NAN = '''
def count(value):
    """Return the number of NaN elements."""
    value = np.asarray(value)
    return int(np.isnan(value.astype(np.float64)).sum()) if value.dtype.kind in "fV" else 0


print("NaN in the inputs:", sum(map(count, inputs.values())))
counts = {name: count(value) for name, value in run(inputs).items()}
for number, (name, elements) in enumerate(counts.items()):
    print(f"output {number} {name!r}: {elements} NaN")
sys.exit(any(counts.values()))
'''

_FAILS = """
run(inputs)
print("The model runs.")
"""


def script(
    runtime: Literal["onnxruntime", "openvino"],
    file: str,
    *,
    title: str,
    goal: Goal = "compare",
    tolerance: float,
    has_special_values: bool = False,
) -> str:
    """Return a Python script that runs a model file with ``inputs.npz``.

    No name inside the model becomes part of the script. ``goal`` decides when it exits with 1: if
    an output differs from ``expected.npz``, contains NaN, or if the model fails.
    ``has_special_values`` uses the module ``onnxruntime_values`` beside the script for values that
    numpy has no type for.
    """
    head = _HEAD.format(title=title, package=runtime)
    if runtime == "openvino":
        is_ir = file.endswith(".xml")
        run = _OPENVINO.format(
            file=file,
            name="port.get_node().get_friendly_name()" if is_ir else "port.get_any_name()",
            output_name="port.get_node().get_friendly_name()" if is_ir else "port.get_any_name()",
        )
    else:
        run = _ONNXRUNTIME.format(outputs=_VALUES if has_special_values else _ARRAYS)
        run = _IMPORT_VALUES + run if has_special_values else run
    load = _LOAD_VALUES if has_special_values else _LOAD
    goal = "compare" if goal == "test" else goal
    ends = {
        "compare": _COMPARE.format(
            tolerance=tolerance,
            load_expected=_LOAD_EXPECTED_VALUES if has_special_values else _LOAD_EXPECTED,
        ),
        "nan": _NAN,
        "fails": _FAILS,
    }
    return f"{head}{run}{load}{ends[goal]}"
