"""Drift of 18 linear-attention loops, 64 tokens, 16 heads of 128 x 128, with OpenVINO and with the
states rounded: seconds and memory.

python -m tests.benchmarks.drift            # all
python -m tests.benchmarks.drift openvino   # one: openvino, or rounded
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

import loopscope
from loopscope.comparison import COMPARED, Drift
from loopscope.peers import drift_from_runtime

LAYERS, TOKENS = 18, 64


def main(names: list[str]) -> None:
    """The model is written, and each is measured, in a process of its own, so that peaks of
    memory are their own.
    """
    alone = [sys.executable, "-m", "tests.benchmarks.drift", "--alone"]
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "stack.xml")
        subprocess.run([*alone, "write", file], check=True)
        for name in names or ["openvino", "rounded"]:
            subprocess.run([*alone, name, file], check=True)


def measure(name: str, file: str) -> None:
    if name == "write":
        _write(file)
        return
    with np.load(f"{file}.npz") as arrays:
        inputs = dict(arrays)
    model = loopscope.read_model(file)
    with _watched() as shares:
        began = time.perf_counter()
        one = _run(model, inputs, {})
        ran = time.perf_counter() - began
        if name == "openvino":
            found = drift_from_runtime(one, inputs, seconds=600)
            drift, sentence = found.drift, found.sentence
        else:
            drift = loopscope.drift(one, _run(model, inputs, {"main/*/S": "bf16"}))
            sentence = drift.sentence
        took = time.perf_counter() - began
    _tell(name, drift, sentence, ran, took, shares)


def _write(file: str) -> None:
    """The model and its inputs; OpenVINO, which makes it, is not in the processes that are
    measured.
    """
    import openvino as ov

    from loopscope_samples.recipes.hybrid_stack import prompt, stack_model
    from loopscope_samples.recipes.language_layers import Sizes

    ov.save_model(
        stack_model(["gated_delta"] * LAYERS, Sizes(width=128, heads=16, size=128)),
        file,
        compress_to_fp16=False,
    )
    np.savez(f"{file}.npz", **prompt(TOKENS, seed=1))


def _run(
    model: loopscope.Model, inputs: Mapping[str, object], rounding: Mapping[str, str]
) -> loopscope.Debugger:
    made = loopscope.Debugger(model, inputs, record=COMPARED, rounding=rounding)
    made.run()
    return made


@contextmanager
def _watched() -> Iterator[list[float]]:
    """What this process and those that it starts take of memory together, in megabytes, five
    times a second; Linux only.
    """
    shares, ended = [0.0], threading.Event()

    def look() -> None:
        while not ended.wait(0.2):
            shares.append(sum(map(_share, _family(os.getpid()))))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield shares
    finally:
        ended.set()
        looking.join()


def _family(process: int) -> list[int]:
    """A process and all that it has started and those have."""
    found = [process]
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # it has just ended
            for child in thread.read_text().split():
                found += _family(int(child))
    return found


def _share(process: int) -> float:
    """Megabytes of a process; what several have in common counts for each by its part (PSS)."""
    try:
        told = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:  # it has just ended
        return 0.0
    return next(
        (int(line.split()[1]) / 1024 for line in told.splitlines() if line.startswith("Pss:")), 0.0
    )


def _tell(
    name: str, drift: Drift, sentence: str, ran: float, took: float, shares: list[float]
) -> None:
    here, there = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    cpu = f"CPU {here.ru_utime + here.ru_stime:.1f} s here, {there.ru_utime + there.ru_stime:.1f} s in the runtime's processes"
    memory = f"at most {max(shares):,.0f} MB in all processes together (PSS), {here.ru_maxrss / 1024:,.0f} MB here"
    print(f"{name}: {took:.1f} s, of which our run {ran:.1f} s; {cpu}; {memory}")
    rows = sum(len(pair.rows.left) for pair in drift.pairs)
    print(f"  {len(drift.pairs):,} places, {rows:,} values; left out: {drift.left_out or 'none'}")
    print(f"  {sentence}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        measure(sys.argv[2], sys.argv[3])
    else:
        main(sys.argv[1:])
