"""Script that runs a model with ONNX Runtime's profiler in a separate process that isolates
crashes.

Arguments: a file of inputs (by position), the model, the JSON file for the events. The model runs
twice; the second run counts. It imports only the adjacent script that reads inputs.
"""

from __future__ import annotations

import json
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any


def main(inputs: str, model: str, target: str) -> int:
    """Return 0 if the model ran; otherwise the last line of stderr is the reason."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_profiling = True
    feed_values = runpy.run_path(str(Path(__file__).with_name("onnxruntime_process.py")))["read"](
        inputs
    )
    with tempfile.TemporaryDirectory(prefix="loopscope-") as folder:
        options.profile_file_prefix = str(Path(folder) / "profile")
        try:
            session = onnxruntime.InferenceSession(
                model, options, providers=["CPUExecutionProvider"]
            )
            feeds = {
                port.name: feed_values[str(number)]
                for number, port in enumerate(session.get_inputs())
                if str(number) in feed_values
            }
            for _ in range(2):
                session.run(None, feeds)
            events = json.loads(Path(session.end_profiling()).read_text("utf-8"))
        except Exception as error:
            sys.stderr.write("\n" + " ".join(str(error).split())[-600:] + "\n")
            return 1
    Path(target).write_text(json.dumps(list(last_run_events(events))), encoding="utf-8")
    sys.stdout.write(f"ONNX Runtime {onnxruntime.__version__}\n")
    return 0


def last_run_events(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return name, kind, begin and duration (microseconds) of the events after the first run, by
    end time.
    """
    ends = [number for number, each in enumerate(events) if each.get("name") == "model_run"]
    entries = []
    for event in events[ends[0] + 1 : ends[-1] + 1]:
        if event.get("cat") in ("Node", "Session"):
            kind = event.get("args", {}).get("op_name", "")
            name = (
                event["name"].removesuffix("_kernel_time")
                if event["cat"] == "Node"
                else event["name"]
            )
            entries.append(
                {
                    "name": name,
                    "kind": kind,
                    "began": event["ts"],
                    "lasted": event["dur"],
                    "is_node": event["cat"] == "Node",
                }
            )
    return entries


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
