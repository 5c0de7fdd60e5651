"""Script that runs models with ONNX Runtime on the CPU in a separate process, so that a crash or
hang stays isolated.

Arguments: entries of the session configuration, a file of inputs (by position), then pairs of a
model and its output file. It is started as a file and imports nothing of Loopscope. The last line
of stdout is the runtime's version.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

NARROW: dict[str, tuple[str, int, type]] = {
    "bf16": ("tensor(bfloat16)", 16, ml_dtypes.bfloat16),
    "f8e4m3": ("tensor(float8e4m3fn)", 17, ml_dtypes.float8_e4m3fn),
    "float8_e4m3fnuz": ("tensor(float8e4m3fnuz)", 18, ml_dtypes.float8_e4m3fnuz),
    "f8e5m2": ("tensor(float8e5m2)", 19, ml_dtypes.float8_e5m2),
    "float8_e5m2fnuz": ("tensor(float8e5m2fnuz)", 20, ml_dtypes.float8_e5m2fnuz),
}
"""Types that ONNX Runtime exchanges as bits only: ONNX Runtime's name, ONNX's number, and the
ml_dtypes type.
"""
PACKED = frozenset(
    {"tensor(int4)", "tensor(uint4)", "tensor(int2)", "tensor(uint2)", "tensor(float4e2m1)"}
)
"""Types with several elements per byte, which ONNX Runtime's Python package cannot return."""
FORMS = "loopscope.forms"
"""Key of the value forms, as defined in ``engine/loopscope/ops/stored.py``."""


_UNOPTIMIZED = "session.unoptimized=1"
"""Setting of this script: without graph optimisations."""
_ENTRY = re.compile(r"session\.[a-z_]+=[0-9]+")


def main(*words: str) -> int:
    """Return 0 if all models ran; otherwise the last line of stderr is the reason."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    entries = [word for word in words if _ENTRY.fullmatch(word)]
    for entry in entries:
        if entry == _UNOPTIMIZED:
            level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.graph_optimization_level = level
        else:
            options.add_session_config_entry(*entry.split("="))
    inputs, *files = words[len(entries) :]
    # One thread: the result of DynamicQuantizeLSTM, and the order of sums, depend on how the work
    # is divided.
    options.intra_op_num_threads = 1
    fed = read(inputs)
    try:
        for model, target in zip(files[::2], files[1::2], strict=True):
            session = onnxruntime.InferenceSession(
                model, options, providers=["CPUExecutionProvider"]
            )
            feeds = {
                port.name: fed[str(number)]
                for number, port in enumerate(session.get_inputs())
                if str(number) in fed
            }
            write(target, [port.name for port in session.get_outputs()], outputs(session, feeds))
    except Exception as error:
        sys.stderr.write("\n" + " ".join(str(error).split())[-20_000:] + "\n")
        return 1
    sys.stdout.write(f"ONNX Runtime {onnxruntime.__version__}\n")
    return 0


@dataclass(frozen=True)
class Withheld:
    """Placeholder for an output of a type that cannot be returned."""

    type: str


def outputs(session: Any, feeds: dict[str, Any]) -> list[Any]:
    """Return the outputs of a model in order."""
    readable = [port for port in session.get_outputs() if port.type not in PACKED]
    results = dict(
        zip(
            (port.name for port in readable),
            run_session(session, feeds, readable) if readable else (),
            strict=True,
        )
    )
    return [
        results[port.name] if port.name in results else Withheld(port.type)
        for port in session.get_outputs()
    ]


def run_session(session: Any, feeds: dict[str, Any], requested: Sequence[Any]) -> list[Any]:
    """Return the requested outputs.

    Tensors of narrow floats are exchanged as bits, which is not possible together with sequences
    and maps.
    """
    from onnxruntime import OrtValue

    types = [port.type for port in (*session.get_inputs(), *requested)]
    names = [port.name for port in requested]
    if not any(name in types for name, _, _ in NARROW.values()) or not all(
        kind.startswith("tensor(") for kind in types
    ):
        return list(session.run(names, feeds))
    numbers = {np.dtype(kind): number for _, number, kind in NARROW.values()}
    feed_values = {}
    bits = {}  # an OrtValue created from bits does not keep the array alive
    for name, array in feeds.items():
        number = numbers.get(array.dtype)
        bits[name] = (
            array
            if number is None
            else np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
        )
        known = number is None
        feed_values[name] = (
            OrtValue.ortvalue_from_numpy(array)
            if known
            else OrtValue.ortvalue_from_numpy_with_onnx_type(bits[name], number)
        )
    return [tensor_of(result) for result in session.run_with_ort_values(names, feed_values)]


def tensor_of(value: Any) -> np.ndarray:
    """Return a tensor from ONNX Runtime; narrow floats become arrays of ml_dtypes types."""
    kind = next((kind for name, _, kind in NARROW.values() if name == value.data_type()), None)
    if kind is None:
        return np.asarray(value.numpy())
    data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    return np.frombuffer(data, kind).reshape(value.shape())


def read(file: str) -> dict[str, Any]:
    """Return the inputs by position."""
    with np.load(file, allow_pickle=False) as stored:
        forms = json.loads(str(stored[FORMS])) if FORMS in stored.files else {}
        plain = {
            name: {"array": name} for name in stored.files if "/" not in name and name != FORMS
        }
        return {name: restore_value(form, stored) for name, form in (plain | forms).items()}


def restore_value(form: dict[str, Any], stored: Mapping[str, np.ndarray]) -> Any:
    """Return a value as ONNX Runtime accepts it: arrays, lists of arrays, None for an empty
    optional.
    """
    if "array" in form:
        array = stored[form["array"]]
        if form.get("type") in NARROW:
            return array.astype(NARROW[form["type"]][2])
        return array.astype(object) if array.dtype.kind == "U" else array
    if "texts" in form:
        return np.array(form["texts"], dtype=object).reshape(form["shape"])
    if "map" in form:
        return {key: restore_value(item, stored).item() for key, item in form["map"]}
    return (
        [restore_value(item, stored) for item in form["sequence"]] if "sequence" in form else None
    )


def write(target: str, names: list[str], values: list[Any]) -> None:
    """Write outputs by position, and the kinds of the outputs that the file cannot store."""
    arrays: dict[str, np.ndarray] = {}
    forms: dict[str, Any] = {}
    unread: dict[str, str] = {}
    for number, value in enumerate(values):
        try:
            forms[str(number)] = describe_value(str(number), value, arrays)
        except TypeError as error:
            unread[str(number)] = str(error)
    metadata = {
        "names": np.array(names),
        "unread": np.array(json.dumps(unread)),
        FORMS: np.array(json.dumps(forms)),
    }
    np.savez(target, allow_pickle=False, **arrays, **metadata)


def describe_value(name: str, value: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the form of a value from ONNX Runtime and add its tensors to ``arrays``.

    Raise ``TypeError`` with the kind of a value that the file cannot store.
    """
    if value is None:
        return {"nothing": True}
    if isinstance(value, list):
        return {
            "sequence": [
                describe_value(f"{name}/{number}", item, arrays)
                for number, item in enumerate(value)
            ]
        }
    if isinstance(value, dict):
        return {
            "map": [
                [key, describe_value(f"{name}/{number}", item, arrays)]
                for number, (key, item) in enumerate(value.items())
            ]
        }
    if isinstance(value, Withheld):
        raise TypeError(value.type)
    if not isinstance(value, (np.ndarray, np.generic, int, float, str)):
        raise TypeError(type(value).__name__)
    array = np.asarray(value)
    if array.dtype.kind in "OU":
        return {
            "texts": [str(item) for item in array.reshape(-1).tolist()],
            "shape": list(array.shape),
        }
    narrow = next((name for name, (_, _, kind) in NARROW.items() if array.dtype == kind), None)
    if narrow is not None:
        arrays[name] = array.astype(np.float32)
        return {"array": name, "type": narrow}
    if array.dtype.kind not in "biuf":
        raise TypeError(str(array.dtype))
    arrays[name] = array
    return {"array": name}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
