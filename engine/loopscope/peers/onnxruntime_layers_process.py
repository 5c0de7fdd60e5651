"""Script that optimises a model with ONNX Runtime and writes the executed operations, in a separate
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
    """Return 0 if the model was optimised; otherwise the last line of stderr is the reason."""
    import onnx
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    provider = f"{device}ExecutionProvider"
    if provider not in onnxruntime.get_available_providers():
        known = ", ".join(
            name.removesuffix("ExecutionProvider") for name in onnxruntime.get_available_providers()
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
        optimized_model = onnx.load(optimized, load_external_data=False)
    except Exception as error:
        sys.stderr.write("\n" + " ".join(str(error).split())[-20_000:] + "\n")
        return 1
    Path(target).write_text(json.dumps(layers(optimized_model.graph)), encoding="utf-8")
    sys.stdout.write(f"ONNX Runtime {onnxruntime.__version__}\n")
    return 0


def layers(graph: Any) -> list[dict[str, Any]]:
    """Return the operations of a graph, including inner graphs."""
    entries: list[dict[str, Any]] = []
    for node in graph.node:
        bodies = {
            attribute.name: layers(attribute.g)
            for attribute in node.attribute
            if attribute.HasField("g")
        }
        outputs = [name for name in node.output if name]
        entries.append(
            {
                "name": node.name,
                "kind": node.op_type,
                "stands_for": [node.name] if node.name else [],
                "outputs": outputs,
                "bodies": bodies,
            }
        )
    return entries


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
