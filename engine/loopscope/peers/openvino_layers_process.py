"""Script that compiles a model with OpenVINO and writes the executed operations, in a separate
process that isolates crashes.

Arguments: the model, the device, the JSON file for the operations. It is started as a file and
imports nothing of Loopscope. The last line of stdout is the version.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main(model: str, device: str, target: str) -> int:
    """Return 0 if the model was compiled; otherwise the last line of stderr is the reason."""
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
    """Return an executed operation and the model operations that it represents."""
    info = operation.get_rt_info()
    text = {
        key: str(getattr(info[key], "value", info[key])) if key in info else ""
        for key in ("layerType", "originalLayersNames")
    }
    names = [name for name in text["originalLayersNames"].split(",") if name]
    return {"name": operation.get_friendly_name(), "kind": text["layerType"], "stands_for": names}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
