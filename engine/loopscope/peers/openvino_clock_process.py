"""Script that runs a model with OpenVINO's time counters in a separate process that isolates
crashes.

Arguments: a file of inputs (by position), the model, the JSON file for the rows. The model runs
twice; the second run counts. It is started as a file and imports nothing of Loopscope.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np


def main(inputs: str, model: str, target: str) -> int:
    """Return 0 if the model ran; otherwise the last line of stderr is the reason."""
    import openvino

    with np.load(inputs, allow_pickle=False) as stored:
        feeds = {int(name): stored[name] for name in stored.files if name.isdecimal()}
    core = openvino.Core()
    try:
        settings = {
            "INFERENCE_PRECISION_HINT": "f32",
            "PERF_COUNT": "YES",
            "INFERENCE_NUM_THREADS": "1",
        }
        request = core.compile_model(core.read_model(model), "CPU", settings).create_infer_request()
        for _ in range(2):
            request.infer(feeds)
        rows = [
            {
                "name": entry.node_name,
                "kind": entry.node_type,
                "lasted": entry.real_time.total_seconds() * 1e6,
            }
            for entry in request.profiling_info
            if str(entry.status).endswith("EXECUTED")
        ]
    except Exception as error:
        sys.stderr.write("\n" + " ".join(str(error).split())[-600:] + "\n")
        return 1
    Path(target).write_text(json.dumps(rows), encoding="utf-8")
    sys.stdout.write(f"OpenVINO {openvino.get_version().partition('-')[0]}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
