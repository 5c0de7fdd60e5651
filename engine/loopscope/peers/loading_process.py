"""Script that loads a model with one runtime in a separate process.

Arguments: the runtime's package and the model. It is started as a file and imports nothing of
Loopscope. Standard output is the version.
"""

from __future__ import annotations

import sys


def main(package: str, model: str) -> int:
    """Return 0 if the runtime loads the model; otherwise the last line of stderr is the reason."""
    try:
        sys.stdout.write(_openvino(model) if package == "openvino" else _onnxruntime(model))
    except Exception as error:
        sys.stderr.write("\n" + " ".join(str(error).split())[-20_000:] + "\n")
        return 1
    return 0


def _openvino(model: str) -> str:
    import openvino

    core = openvino.Core()
    core.compile_model(core.read_model(model), "CPU")
    return str(openvino.get_version()).partition("-")[0]


def _onnxruntime(model: str) -> str:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return str(onnxruntime.__version__)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
