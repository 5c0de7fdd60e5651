"""Runs models with ONNX Runtime on the processor, in a process of its own: a runtime that crashes or hangs takes nothing with it.

Arguments: a file of inputs (by position), then pairs of a model and the file that its outputs go to. Started as a file, so it imports
nothing of ours. The last line of the output says which version ran.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np


def main(inputs: str, *files: str) -> int:
    """0 when all models have run; else the last line of stderr says why not."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    with np.load(inputs, allow_pickle=False) as stored:
        fed = [made(form, stored) for form in json.loads(str(stored["forms"]))]
    try:
        for model, target in zip(files[::2], files[1::2], strict=True):
            session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
            feeds = {one.name: array for one, array in zip(session.get_inputs(), fed, strict=False)}
            names = [one.name for one in session.get_outputs()]
            arrays: dict[str, np.ndarray] = {}
            forms = json.dumps([described(value, arrays) for value in session.run(None, feeds)])
            np.savez(target, allow_pickle=False, names=np.array(names), forms=np.array(forms), **arrays)
    except Exception as error:
        sys.stderr.write("\n" + " ".join(str(error).split())[-600:] + "\n")
        return 1
    sys.stdout.write(f"ONNX Runtime {onnxruntime.__version__}\n")
    return 0


def made(form: dict[str, Any], stored: Any) -> Any:
    """A value as ONNX Runtime takes it: arrays, lists of them, None where an optional has nothing."""
    if "array" in form:
        return stored[form["array"]]
    if "texts" in form:
        return np.array(form["texts"], dtype=object).reshape(form["shape"])
    return [made(one, stored) for one in form["sequence"]] if "sequence" in form else None


def described(value: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """A value as ONNX Runtime gives it; its tensors go to ``arrays``."""
    if value is None:
        return {"nothing": True}
    if isinstance(value, list):
        return {"sequence": [described(one, arrays) for one in value]}
    if isinstance(value, dict):
        return {"map": [[key, described(one, arrays)] for key, one in value.items()]}
    if not isinstance(value, (np.ndarray, np.generic, int, float, str)):
        return {"unread": type(value).__name__}
    array = np.asarray(value)
    if array.dtype.kind in "OU":
        return {"texts": [str(one) for one in array.reshape(-1).tolist()], "shape": list(array.shape)}
    if array.dtype.kind not in "biuf":
        return {"unread": str(array.dtype)}
    name = str(len(arrays))
    arrays[name] = array
    return {"array": name}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
