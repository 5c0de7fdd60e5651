"""Script that calls the script of a runtime many times in one process, which saves its start.

Argument: a file such as ``onnxruntime_process.py``. Each line of the input is a JSON list of the
arguments of one call. Each answer is a line of JSON: exit code, output and errors. It is started
as a file and imports nothing of Loopscope.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import sys


def main(file: str) -> int:
    """Answer requests until the input ends, then return 0."""
    spec = importlib.util.spec_from_file_location("runtime_process", file)
    assert spec is not None
    assert spec.loader is not None
    process = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = process  # dataclasses look up their module
    spec.loader.exec_module(process)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of a library must not mix with answers
    for line in sys.stdin:
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            code = process.main(*json.loads(line))
        answers.write(json.dumps([code, output.getvalue(), errors.getvalue()]) + "\n")
        answers.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
