"""Runs models with ONNX Runtime on the processor, in a process of its own: a runtime that crashes or hangs takes nothing with it.

Arguments: a file of inputs (by position), then pairs of a model and the file that its outputs go to. Started as a file, so it imports
nothing of ours. The last line of the output says which version ran.
"""

from __future__ import annotations

import sys

import numpy as np


def main(inputs: str, *files: str) -> int:
    """0 when all models have run; else the last line of stderr says why not."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    with np.load(inputs, allow_pickle=False) as stored:
        fed = [stored[str(number)] for number in range(len(stored.files))]
    try:
        for model, target in zip(files[::2], files[1::2], strict=True):
            session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
            feeds = {one.name: array for one, array in zip(session.get_inputs(), fed, strict=False)}
            names = [one.name for one in session.get_outputs()]
            given = {str(number): array for number, array in enumerate(session.run(None, feeds))}
            np.savez(target, names=np.array(names), **given)
    except Exception as error:
        sys.stderr.write("\n" + " ".join(str(error).split())[-600:] + "\n")
        return 1
    sys.stdout.write(f"ONNX Runtime {onnxruntime.__version__}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
