"""Runs models with ONNX Runtime on the processor, in a process of its own: a runtime that crashes
or hangs takes nothing with it.

Arguments: entries of the session's configuration, a file of inputs (by position), then pairs of a
model and the file that its outputs go to. Started as a file, so it imports nothing of ours. The
last line of the output says which version ran.
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
"""Types that ONNX Runtime takes and gives by their bits only: ONNX Runtime's name, ONNX's
number, and the package's that has them.
"""
PACKED = frozenset(
    {"tensor(int4)", "tensor(uint4)", "tensor(int2)", "tensor(uint2)", "tensor(float4e2m1)"}
)
"""Types with several elements in a byte: ONNX Runtime's Python package hands them out in no
form.
"""
FORMS = "loopscope.forms"
"""As in ``engine/loopscope/ops/stored.py``, which says what is in it."""


_ENTRY = re.compile(r"session\.[a-z_]+=[0-9]+")


def main(*words: str) -> int:
    """0 when all models have run; else the last line of stderr says why not."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    entries = [word for word in words if _ENTRY.fullmatch(word)]
    for entry in entries:
        options.add_session_config_entry(*entry.split("="))
    inputs, *files = words[len(entries) :]
    # what DynamicQuantizeLSTM gives depends on how the work is divided, and so does the order of
    # sums
    options.intra_op_num_threads = 1
    fed = read(inputs)
    try:
        for model, target in zip(files[::2], files[1::2], strict=True):
            session = onnxruntime.InferenceSession(
                model, options, providers=["CPUExecutionProvider"]
            )
            feeds = {
                one.name: fed[str(number)]
                for number, one in enumerate(session.get_inputs())
                if str(number) in fed
            }
            write(target, [one.name for one in session.get_outputs()], outputs(session, feeds))
    except Exception as error:
        sys.stderr.write("\n" + " ".join(str(error).split())[-20_000:] + "\n")
        return 1
    sys.stdout.write(f"ONNX Runtime {onnxruntime.__version__}\n")
    return 0


@dataclass(frozen=True)
class Withheld:
    """Stands for an output of a type that cannot be handed out."""

    type: str


def outputs(session: Any, feeds: dict[str, Any]) -> list[Any]:
    """What a model gives, in the order of its outputs."""
    handed = [one for one in session.get_outputs() if one.type not in PACKED]
    made = dict(
        zip(
            (one.name for one in handed),
            handed_out(session, feeds, handed) if handed else (),
            strict=True,
        )
    )
    return [
        made[one.name] if one.name in made else Withheld(one.type) for one in session.get_outputs()
    ]


def handed_out(session: Any, feeds: dict[str, Any], asked: Sequence[Any]) -> list[Any]:
    """Tensors of narrow floats go in and come out by their bits, which cannot be done beside
    sequences and maps.
    """
    from onnxruntime import OrtValue

    types, names = (
        [one.type for one in (*session.get_inputs(), *asked)],
        [one.name for one in asked],
    )
    if not any(name in types for name, _, _ in NARROW.values()) or not all(
        one.startswith("tensor(") for one in types
    ):
        return list(session.run(names, feeds))
    numbers = {np.dtype(kind): number for _, number, kind in NARROW.values()}
    given = {}
    bits = {}  # an OrtValue that is made so does not hold the array
    for name, array in feeds.items():
        number = numbers.get(array.dtype)
        bits[name] = (
            array
            if number is None
            else np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
        )
        known = number is None
        given[name] = (
            OrtValue.ortvalue_from_numpy(array)
            if known
            else OrtValue.ortvalue_from_numpy_with_onnx_type(bits[name], number)
        )
    return [taken(one) for one in session.run_with_ort_values(names, given)]


def taken(value: Any) -> np.ndarray:
    """A tensor that ONNX Runtime gave, narrow floats as arrays of their package's types."""
    kind = next((kind for name, _, kind in NARROW.values() if name == value.data_type()), None)
    if kind is None:
        return np.asarray(value.numpy())
    data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    return np.frombuffer(data, kind).reshape(value.shape())


def read(file: str) -> dict[str, Any]:
    """Inputs by position."""
    with np.load(file, allow_pickle=False) as stored:
        forms = json.loads(str(stored[FORMS])) if FORMS in stored.files else {}
        plain = {
            name: {"array": name} for name in stored.files if "/" not in name and name != FORMS
        }
        return {name: made(form, stored) for name, form in (plain | forms).items()}


def made(form: dict[str, Any], stored: Mapping[str, np.ndarray]) -> Any:
    """A value as ONNX Runtime takes it: arrays, lists of them, None where an optional has
    nothing.
    """
    if "array" in form:
        array = stored[form["array"]]
        if form.get("type") in NARROW:
            return array.astype(NARROW[form["type"]][2])
        return array.astype(object) if array.dtype.kind == "U" else array
    if "texts" in form:
        return np.array(form["texts"], dtype=object).reshape(form["shape"])
    if "map" in form:
        return {key: made(one, stored).item() for key, one in form["map"]}
    return [made(one, stored) for one in form["sequence"]] if "sequence" in form else None


def write(target: str, names: list[str], values: list[Any]) -> None:
    """Outputs by position, with the kinds of those that no file can hold."""
    arrays: dict[str, np.ndarray] = {}
    forms: dict[str, Any] = {}
    unread: dict[str, str] = {}
    for number, value in enumerate(values):
        try:
            forms[str(number)] = described(str(number), value, arrays)
        except TypeError as error:
            unread[str(number)] = str(error)
    told = {
        "names": np.array(names),
        "unread": np.array(json.dumps(unread)),
        FORMS: np.array(json.dumps(forms)),
    }
    np.savez(target, allow_pickle=False, **arrays, **told)


def described(name: str, value: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """A value as ONNX Runtime gives it; its tensors go to ``arrays``. ``TypeError`` with the
    kind of what no file can hold.
    """
    if value is None:
        return {"nothing": True}
    if isinstance(value, list):
        return {
            "sequence": [
                described(f"{name}/{number}", one, arrays) for number, one in enumerate(value)
            ]
        }
    if isinstance(value, dict):
        return {
            "map": [
                [key, described(f"{name}/{number}", one, arrays)]
                for number, (key, one) in enumerate(value.items())
            ]
        }
    if isinstance(value, Withheld):
        raise TypeError(value.type)
    if not isinstance(value, (np.ndarray, np.generic, int, float, str)):
        raise TypeError(type(value).__name__)
    array = np.asarray(value)
    if array.dtype.kind in "OU":
        return {
            "texts": [str(one) for one in array.reshape(-1).tolist()],
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
