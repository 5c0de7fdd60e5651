"""Runs a model with ONNX Runtime and its own profile, in a process of its own: a runtime that
crashes takes nothing with it.

Arguments: a file of inputs (by position), the model, the file for the events as JSON. The model
runs twice, and the second run counts. It imports nothing of ours but the file beside it that reads
inputs.
"""

from __future__ import annotations

import json
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any


def main(inputs: str, model: str, target: str) -> int:
    """0 when the model has run; else the last line of stderr says why not."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_profiling = True
    fed = runpy.run_path(str(Path(__file__).with_name("onnxruntime_process.py")))["read"](inputs)
    with tempfile.TemporaryDirectory(prefix="loopscope-") as folder:
        options.profile_file_prefix = str(Path(folder) / "profile")
        try:
            session = onnxruntime.InferenceSession(
                model, options, providers=["CPUExecutionProvider"]
            )
            feeds = {
                one.name: fed[str(number)]
                for number, one in enumerate(session.get_inputs())
                if str(number) in fed
            }
            for _ in range(2):
                session.run(None, feeds)
            events = json.loads(Path(session.end_profiling()).read_text("utf-8"))
        except Exception as error:
            sys.stderr.write("\n" + " ".join(str(error).split())[-600:] + "\n")
            return 1
    Path(target).write_text(json.dumps(list(of_the_last_run(events))), encoding="utf-8")
    sys.stdout.write(f"ONNX Runtime {onnxruntime.__version__}\n")
    return 0


def of_the_last_run(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Name, kind, beginning and duration in microseconds of what ended after the first run had,
    in that order.
    """
    ends = [number for number, one in enumerate(events) if one.get("name") == "model_run"]
    found = []
    for one in events[ends[0] + 1 : ends[-1] + 1]:
        if one.get("cat") in ("Node", "Session"):
            kind = one.get("args", {}).get("op_name", "")
            name = one["name"].removesuffix("_kernel_time") if one["cat"] == "Node" else one["name"]
            found.append(
                {
                    "name": name,
                    "kind": kind,
                    "began": one["ts"],
                    "lasted": one["dur"],
                    "is_node": one["cat"] == "Node",
                }
            )
    return found


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
