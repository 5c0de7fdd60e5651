"""Has ONNX Runtime optimize a model and writes down which operations it runs, in a process of its
own: one that crashes takes nothing with it.

Arguments: the model, the device, the file for the operations as JSON. Started as a file, so it
imports nothing of ours. The last line of the output says which version it was.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main(model: str, device: str, target: str) -> int:
    """0 when the model was optimized; else the last line of stderr says why not."""
    import onnx
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    provider = f"{device}ExecutionProvider"
    if provider not in onnxruntime.get_available_providers():
        known = ", ".join(
            one.removesuffix("ExecutionProvider") for one in onnxruntime.get_available_providers()
        )
        sys.stderr.write(f"\nit has no device {device!r} here, only {known}\n")
        return 1
    optimized = f"{target}.onnx"
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = optimized
    options.add_session_config_entry(
        "session.optimized_model_external_initializers_file_name", f"{len(target)}.data"
    )
    try:
        onnxruntime.InferenceSession(model, options, providers=[provider])
        runs = onnx.load(optimized, load_external_data=False)
    except Exception as error:
        sys.stderr.write("\n" + " ".join(str(error).split())[-20_000:] + "\n")
        return 1
    Path(target).write_text(json.dumps(layers(runs.graph)), encoding="utf-8")
    sys.stdout.write(f"ONNX Runtime {onnxruntime.__version__}\n")
    return 0


def layers(graph: Any) -> list[dict[str, Any]]:
    """The operations of a graph, with those of the graphs inside."""
    made: list[dict[str, Any]] = []
    for node in graph.node:
        bodies = {
            attribute.name: layers(attribute.g)
            for attribute in node.attribute
            if attribute.HasField("g")
        }
        outputs = [name for name in node.output if name]
        made.append(
            {
                "name": node.name,
                "kind": node.op_type,
                "stands_for": [node.name] if node.name else [],
                "outputs": outputs,
                "bodies": bodies,
            }
        )
    return made


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
