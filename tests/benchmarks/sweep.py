"""Times sweeps of collatz against plain loops over other runtimes: ``python -m
tests.benchmarks.sweep [NUMBERS]``.

Wall-clock time for each input, and the ratios that the design asks for. The plain loops record
nothing; a row of a sweep has counts, endings and branches.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep

import joblib
import numpy as np
import onnx
import onnxruntime
from distributed import Client
from onnx.reference import ReferenceEvaluator

import loopscope
from tests.app.serving import SOURCES

COLLATZ = """
<ir_version: 8, opset_import: ["" : 17]>
collatz (int64 number) => (int64 last, int64 steps)
<int64 one = {1}, int64 two = {2}, int64 three = {3}, int64 zero = {0}>
{
  same = Equal (number, one)
  start = Not (same)
  last, steps = Loop <body = body (int64 i, bool go, int64 n, int64 s) => (bool on, int64 m, int64 t) {
    rest = Mod (n, two)
    even = Equal (rest, zero)
    m = If (even) <
      then_branch = then () => (int64 half) { half = Div (n, two) },
      else_branch = other () => (int64 more) { triple = Mul (n, three) more = Add (triple, one) }
    >
    t = Add (s, one)
    ended = Equal (m, one)
    on = Not (ended)
  }> ("", start, number, zero)
}
"""


_ADDRESSES = ("10.77.0.1", "10.77.0.2")
"""Of the two machines that network namespaces stand for."""


def main() -> None:
    """Prints a line for each way, and the ratios."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    model = loopscope.read_model(Path("sample_models/collatz/model.xml"))
    plain = onnx.parser.parse_model(COLLATZ)
    session = onnxruntime.InferenceSession(
        plain.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    evaluator = ReferenceEvaluator(plain)
    assert int(session.run(["steps"], {"number": np.array(27)})[0]) == int(
        next(iter(loopscope.sweep(model, "number=27")))["output steps"]
    )
    few = min(count, 1000)
    ways: dict[str, tuple[int, Callable[[int], object]]] = {
        "onnxruntime, plain loop": (
            count,
            lambda n: [
                session.run(["steps"], {"number": np.array(one)}) for one in range(1, n + 1)
            ],
        ),
        "onnx.reference, plain loop": (
            few // 10,
            lambda n: [
                evaluator.run(["steps"], {"number": np.array(one)}) for one in range(1, n + 1)
            ],
        ),
        "sweep in lanes": (
            count,
            lambda n: loopscope.sweep(model, f"number=1..{n}", workers=1).run(),
        ),
        "sweep one by one": (
            few,
            lambda n: loopscope.sweep(model, f"number=1..{n}", workers=1, lanes=False).run(),
        ),
        "onnxruntime, joblib with 2 processes": (
            count,
            lambda n: _with_joblib(plain.SerializeToString(), n),
        ),
        **{
            f"sweep one by one, {workers} processes": (
                count,
                partial(_one_by_one, model, workers=workers),
            )
            for workers in (2, 4)
        },
    }
    seconds = {name: _timed(run, amount) / amount for name, (amount, run) in ways.items()}
    for name, one in seconds.items():
        print(f"{name:32} {one * 1e6:10.1f} us an input")
    reference = seconds["onnxruntime, plain loop"]
    for name in ("sweep in lanes", "sweep one by one, 2 processes"):
        print(f"{name} / onnxruntime: {seconds[name] / reference:.2f} (at most 3)")
    _a_million(model)
    _two_machines(model, count)
    print(
        f"most memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
    )


def _a_million(model: loopscope.Model, count: int = 1_000_000) -> None:
    """All of 1 to 1,000,000 in lanes, and some of them one by one, which take as many iterations
    on average.
    """
    few = count // 200
    lanes = (
        _timed(lambda n: loopscope.sweep(model, f"number=1..{n}", workers=1).run(), count) / count
    )
    alone = (
        _timed(
            lambda n: loopscope.sweep(
                model, f"random:{n} seed=3 number=1..{count}", workers=1, lanes=False
            ).run(),
            few,
        )
        / few
    )
    print(
        f"of 1 to {count:,}: in lanes {lanes * 1e6:.1f} us an input, one by one {alone * 1e6:.1f}: {alone / lanes:.0f} times (at least 50)"
    )


def _with_joblib(model: bytes, count: int) -> None:
    chunks = np.array_split(np.arange(1, count + 1), 8)
    joblib.Parallel(n_jobs=2)(joblib.delayed(_plain_loop)(model, chunk) for chunk in chunks)


def _plain_loop(model: bytes, numbers: np.ndarray) -> list[int]:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return [int(session.run(["steps"], {"number": np.array(one)})[0]) for one in numbers]


def _one_by_one(
    model: loopscope.Model,
    count: int,
    *,
    workers: int,
    scheduler: str = "",
    out: Path | None = None,
) -> None:
    loopscope.sweep(
        model,
        f"number=1..{count}",
        workers=workers,
        scheduler=scheduler,
        lanes=False,
        seconds=False,
        out=out,
    ).run()


def _two_machines(model: loopscope.Model, count: int) -> None:
    """A scheduler and two workers that were started by themselves, as two machines have them: the
    same bytes as one process gives.

    Where the system allows it, each machine is a network namespace, and a virtual cable is all that
    joins them.
    """
    with TemporaryDirectory() as folder, ExitStack() as ended:
        machines = _namespaces(ended)
        host = _ADDRESSES[0] if machines else "127.0.0.1"
        inside = [["ip", "netns", "exec", name] for name in machines] or [[], []]
        file = Path(folder) / "scheduler.json"
        python = [sys.executable, "-m"]
        _started(ended, folder, [*inside[0], *python, "distributed.cli.dask_scheduler", "--host", host, "--port", "0", "--no-dashboard",
                                 "--scheduler-file", str(file)])  # fmt: skip
        while not file.exists():
            sleep(0.1)
        scheduler = json.loads(file.read_text())["address"]
        for place in inside:
            _started(
                ended,
                folder,
                [
                    *place,
                    *python,
                    "distributed.cli.dask_worker",
                    scheduler,
                    "--nthreads",
                    "1",
                    "--no-dashboard",
                ],
            )
        one, other = (Path(folder) / f"{name}.parquet" for name in ("one", "other"))
        told = subprocess.run(
            [
                *inside[0],
                *python,
                "tests.benchmarks.sweep",
                "--client",
                scheduler,
                str(count),
                str(one),
            ],
            check=True,
            capture_output=True,
        )
        _one_by_one(model, count, workers=1, out=other)
        same = one.read_bytes() == other.read_bytes()
        where = "2 network namespaces" if machines else "processes of their own"
        seconds = float(told.stdout.split()[-1])
        print(
            f"2 workers in {where}: {seconds / count * 1e6:.1f} us an input, {'the same' if same else 'OTHER'} bytes"
        )


def _client(scheduler: str, count: int, out: str) -> None:
    """What the first machine does: the sweep on both, timed."""
    with Client(scheduler) as client:
        client.wait_for_workers(2)
    begun = perf_counter()
    _one_by_one(
        loopscope.read_model(Path("sample_models/collatz/model.xml")),
        count,
        workers=2,
        scheduler=scheduler,
        out=Path(out),
    )
    print(perf_counter() - begun)


def _started(ended: ExitStack, folder: str, words: list[str]) -> None:
    process = subprocess.Popen(
        words, cwd=folder, env={**os.environ, "PYTHONPATH": SOURCES}, stderr=subprocess.DEVNULL
    )
    ended.callback(process.wait)
    ended.callback(process.terminate)


def _namespaces(ended: ExitStack) -> list[str]:
    """Two network namespaces with a virtual cable between them; none where the system does not
    allow that.
    """
    names = [f"loopscope-{os.getpid()}-{number}" for number in (1, 2)]
    cable = [f"ls{os.getpid()}-{number}" for number in (1, 2)]
    steps = [["netns", "add", name] for name in names]
    steps.append(
        [
            "link",
            "add",
            cable[0],
            "netns",
            names[0],
            "type",
            "veth",
            "peer",
            "name",
            cable[1],
            "netns",
            names[1],
        ]
    )
    for name, end, address in zip(names, cable, _ADDRESSES, strict=True):
        steps += [
            ["-n", name, "addr", "add", f"{address}/24", "dev", end],
            ["-n", name, "link", "set", end, "up"],
        ]
        steps.append(["-n", name, "link", "set", "lo", "up"])
    for name in names:
        ended.callback(subprocess.run, ["ip", "netns", "delete", name], capture_output=True)
    try:
        for step in steps:
            subprocess.run(["ip", *step], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(
            f"no network namespaces here: {getattr(error, 'stderr', b'').decode().strip() or error}"
        )
        return []
    return names


def _timed(run: Callable[[int], object], amount: int) -> float:
    run(min(amount, 100))
    begun = perf_counter()
    run(amount)
    return perf_counter() - begun


if __name__ == "__main__":
    if sys.argv[1:2] == ["--client"]:
        _client(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        main()
