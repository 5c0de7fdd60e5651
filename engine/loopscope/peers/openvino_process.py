"""Script that runs models with OpenVINO on the CPU in a separate process, so that a crash or hang
stays isolated.

Arguments: properties such as ``NUM_STREAMS=1``, a file of inputs (by position), then pairs of a
model and its output file. It is started as a file and imports nothing of Loopscope. The last line
of stdout is the version.
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
    """Return 0 if all models ran; otherwise the last line of stderr is the reason."""
    import openvino

    properties = dict(word.split("=") for word in words if _PROPERTY.fullmatch(word))
    inputs, *files = words[len(properties) :]
    with np.load(inputs, allow_pickle=False) as stored:
        feeds = {int(name): stored[name] for name in stored.files if name.isdecimal()}
    core = openvino.Core()
    try:
        for model, target in zip(files[::2], files[1::2], strict=True):
            compiled = core.compile_model(
                core.read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32", **properties}
            )
            _release_pages(f"{model.removesuffix('.xml')}.bin")
            request = compiled.create_infer_request()
            request.infer(feeds)
            names = [output.get_node().get_friendly_name() for output in compiled.outputs]
            tensors = [request.get_output_tensor(number) for number in range(len(names))]
            results = {
                str(number): tensor.str_data
                if tensor.element_type == openvino.Type.string
                else tensor.data
                for number, tensor in enumerate(tensors)
            }
            np.savez(target, names=np.array(names), **results)
    except Exception as error:
        sys.stderr.write("\n" + " ".join(str(error).split())[-20_000:] + "\n")
        return 1
    sys.stdout.write(f"OpenVINO {openvino.get_version().partition('-')[0]}\n")
    return 0


def _release_pages(weights: str) -> None:
    """Release the memory pages of a mapped weights file.

    OpenVINO has copied the weights it needs, and pages that it reads again are loaded again.
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
