"""Runs models with OpenVINO on the processor, in a process of its own: a runtime that crashes or
hangs takes nothing with it.

Arguments: properties such as ``NUM_STREAMS=1``, a file of inputs (by position), then pairs of a
model and the file that its outputs go to. Started as a file, so it imports nothing of ours. The
last line of the output says which version ran.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import sys
from pathlib import Path

import numpy as np

_PROPERTY = re.compile("[A-Z_]+=[0-9]+")


def main(*words: str) -> int:
    """0 when all models have run; else the last line of stderr says why not."""
    import openvino

    properties = dict(word.split("=") for word in words if _PROPERTY.fullmatch(word))
    inputs, *files = words[len(properties) :]
    with np.load(inputs, allow_pickle=False) as stored:
        fed = {int(name): stored[name] for name in stored.files if name.isdecimal()}
    core = openvino.Core()
    try:
        for model, target in zip(files[::2], files[1::2], strict=True):
            compiled = core.compile_model(
                core.read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32", **properties}
            )
            _let_go_of(f"{model.removesuffix('.xml')}.bin")
            request = compiled.create_infer_request()
            request.infer(fed)
            names = [output.get_node().get_friendly_name() for output in compiled.outputs]
            given = {
                str(number): request.get_output_tensor(number).data for number in range(len(names))
            }
            np.savez(target, names=np.array(names), **given)
    except Exception as error:
        sys.stderr.write("\n" + " ".join(str(error).split())[-20_000:] + "\n")
        return 1
    sys.stdout.write(f"OpenVINO {openvino.get_version().partition('-')[0]}\n")
    return 0


def _let_go_of(weights: str) -> None:
    """Gives back the memory pages of a mapped weights file: OpenVINO has copied what it needs,
    and what it reads again comes again.
    """
    if sys.platform != "linux":
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    with Path("/proc/self/maps").open(encoding="utf-8", errors="surrogateescape") as mappings:
        for line in mappings:
            if line.rstrip("\n").endswith(weights):
                begin, end = (int(number, 16) for number in line.split(maxsplit=1)[0].split("-"))
                advise(begin, end - begin, mmap.MADV_DONTNEED)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
