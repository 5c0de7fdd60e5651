"""Runs a model with OpenVINO and its counters of time, in a process of its own: a runtime that
crashes takes nothing with it.

Arguments: a file of inputs (by position), the model, the file for the rows as JSON. The model runs
twice, and the second run counts. Started as a file, so it imports nothing of ours.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np


def main(inputs: str, model: str, target: str) -> int:
    """0 when the model has run; else the last line of stderr says why not."""
    import openvino

    with np.load(inputs, allow_pickle=False) as stored:
        fed = {int(name): stored[name] for name in stored.files if name.isdecimal()}
    core = openvino.Core()
    try:
        settings = {
            "INFERENCE_PRECISION_HINT": "f32",
            "PERF_COUNT": "YES",
            "INFERENCE_NUM_THREADS": "1",
        }
        request = core.compile_model(core.read_model(model), "CPU", settings).create_infer_request()
        for _ in range(2):
            request.infer(fed)
        rows = [
            {
                "name": one.node_name,
                "kind": one.node_type,
                "lasted": one.real_time.total_seconds() * 1e6,
            }
            for one in request.profiling_info
            if str(one.status).endswith("EXECUTED")
        ]
    except Exception as error:
        sys.stderr.write("\n" + " ".join(str(error).split())[-600:] + "\n")
        return 1
    Path(target).write_text(json.dumps(rows), encoding="utf-8")
    sys.stdout.write(f"OpenVINO {openvino.get_version().partition('-')[0]}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
