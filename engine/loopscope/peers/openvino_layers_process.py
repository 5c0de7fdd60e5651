"""Compiles a model with OpenVINO and writes down which operations it runs, in a process of its own:
a compiler that crashes takes nothing with it.

Arguments: the model, the device, the file for the operations as JSON. Started as a file, so it
imports nothing of ours. The last line of the output says which version compiled.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main(model: str, device: str, target: str) -> int:
    """0 when the model was compiled; else the last line of stderr says why not."""
    import openvino

    core = openvino.Core()
    try:
        hint = {"INFERENCE_PRECISION_HINT": "f32"} if device == "CPU" else {}
        runtime_model = core.compile_model(core.read_model(model), device, hint).get_runtime_model()
    except Exception as error:
        sys.stderr.write("\n" + " ".join(str(error).split())[-20_000:] + "\n")
        return 1
    Path(target).write_text(
        json.dumps([layer(operation) for operation in runtime_model.get_ops()]), encoding="utf-8"
    )
    sys.stdout.write(f"OpenVINO {openvino.get_version().partition('-')[0]}\n")
    return 0


def layer(operation: Any) -> dict[str, Any]:
    """What runs, and the operations of the model that it stands for."""
    told = operation.get_rt_info()
    text = {
        key: str(getattr(told[key], "value", told[key])) if key in told else ""
        for key in ("layerType", "originalLayersNames")
    }
    names = [name for name in text["originalLayersNames"].split(",") if name]
    return {"name": operation.get_friendly_name(), "kind": text["layerType"], "stands_for": names}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
