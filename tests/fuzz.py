"""Damages model files at random and takes them all the way through: ``python -m tests.fuzz --seconds 600 --seed 1 [FILES]``.

Each case is read, checked, run under small limits, drawn, and written, and things are typed into its debugger, in a process of its
own kind that dies alone. Found is what nobody may bring about: an error that is not the engine's, a crash, more than 10 s, more than 1 GB.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import multiprocessing
import random
import re
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import onnx.parser

import engine
from engine.check.check import check
from engine.errors import EngineError
from engine.ir.model import Model
from engine.ops.catalogue import CATALOGUE
from engine.read.limits import ReadLimits
from engine.view.build import graph_view
from engine.view.dot import dot_text
from engine.view.overlay import overlay_at
from engine.view.payload import structure
from engine.write import write_model
from sample_models import samples
from tests.mutations import mutated
from tests.typed import type_into

MOST_SECONDS = 10
MOST_BYTES = 2**30
READ_LIMITS = ReadLimits(unpacked_bytes=2**26, conversion_seconds=6)
LIMITS = engine.Limits(iterations=10_000, seconds=2, memory_bytes=2**26)

_ARCHIVE = Path(__file__).parent / "engine" / "read" / "files" / "while_loop_saved_model.zip"
_HEAD = '<ir_version: 9, opset_import: ["" : 18, "own" : 1]>\n'
_ONNX = {
    "loop.onnx": """agraph (int64 trips, bool go, float[N] x) => (float[M] last, float[K, L] seen) {
        last, seen = Loop (trips, go, x) <
            body = inside (int64 number, bool goes_on, float[N] state) => (bool again, float[M] next, float[P] each) {
            one = Constant <value = float[1] {1.5}> ()
            more = Mul (state, one)
            longer = Concat <axis: int = 0> (more, one)
            most = Constant <value_int: int = 6> ()
            again = Less (number, most)
            next = Identity (longer)
            zero = Constant <value_ints: ints = [0]> ()
            two = Constant <value_ints: ints = [1]> ()
            each = Slice (longer, zero, two)
        }>
    }""",
    "if.onnx": """agraph (bool flag, float[2, 3] x, int64[2] shape) => (float[R, S] y) {
        y = If (flag) <
            then_branch = yes () => (float[2, 3] a) { b = Relu (x) a = Add (b, x) },
            else_branch = no () => (float[T, U] c) { c = Expand (x, shape) }
        >
    }""",
    "scan.onnx": """agraph (float[2] start, float[5, 2] xs, int64[2] times) => (float[2] total, float[V, W] tiled) {
        total, sums = Scan (start, xs) <num_scan_inputs: int = 1, body = step (float[2] sum, float[2] one) => (float[2] now, float[2] out) {
            now = Add (sum, one)
            out = own.twice (now)
        }>
        tiled = Tile (sums, times)
    }
    <domain: "own", opset_import: ["" : 18]>
    twice (p) => (q) { q = Add (p, p) }""",
}


@dataclass(frozen=True, slots=True)
class Original:
    """A sound model as the bytes of its files, with inputs that it runs on."""

    name: str
    document: bytes
    weights: bytes
    inputs: tuple[dict[str, np.ndarray], ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A case that did what none may; ``case`` and the seed make it again."""

    case: int
    name: str
    what: str

    def __str__(self) -> str:
        return f"case {self.case} of {self.name}: {self.what}"


def originals(files: Sequence[Path] = ()) -> list[Original]:
    """The files given, or all sample models, three ONNX models with bodies, and a zip archive."""
    if files:
        return [_original(path, ()) for path in files]
    own = [_original(one.model, tuple(given.arrays() for given in one.sets if not given.never_ends)) for one in samples()]
    own.append(Original(_ARCHIVE.name, _ARCHIVE.read_bytes(), b""))
    return own + [Original(name, onnx.parser.parse_model(_HEAD + text).SerializeToString(), b"") for name, text in _ONNX.items()] * 3


def _original(path: Path, inputs: tuple[dict[str, np.ndarray], ...]) -> Original:
    weights = path.with_suffix(".bin")
    return Original(f"{path.parent.name}/{path.name}", path.read_bytes(), weights.read_bytes() if weights.exists() else b"", inputs)


def case_of(chosen: Sequence[Original], seed: int, number: int) -> tuple[Original, bytes, bytes, random.Random]:
    """The files of one case, and the dice that go on to choose its inputs."""
    dice = random.Random(f"{seed}:{number}")
    original = dice.choice(chosen)
    # A sound one now and then: what is typed into it gets further.
    sound = dice.random() < 0.1
    return original, *((original.document, original.weights) if sound else mutated(dice, original.document, original.weights)), dice


def go_through(document: bytes, weights: bytes, inputs: Sequence[dict[str, np.ndarray]], dice: random.Random) -> None:
    """From bytes to everything that a user would see of them; what is raised is no ``EngineError``."""
    try:
        model = engine.read_model(document, weights, limits=READ_LIMITS)
    except EngineError:
        return
    str(check(model, CATALOGUE).summary())
    view = graph_view(model)
    dot_text(view, standalone=dice.random() < 0.5)
    structure(view)
    given = dice.choice(inputs) if inputs and dice.random() < 0.8 else _made_up(model, dice)
    for use in (_run, _debug):
        try:
            use(model, given, dice)
        except EngineError as error:
            str(error)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "m.xml"
        try:
            write_model(model, target)
        except EngineError:
            return
        # What is written can be read again, whatever it was made of.
        engine.read_model(target)


def _run(model: Model, inputs: dict[str, np.ndarray], dice: random.Random) -> None:
    result = engine.run(model, inputs, limits=LIMITS, seed=0)
    for record in result.control_flow[:100]:
        str(record)


def _debug(model: Model, inputs: dict[str, np.ndarray], dice: random.Random) -> None:
    view = graph_view(model)
    debugger = engine.Debugger(model, inputs, limits=LIMITS)
    for _ in range(12):
        move = dice.choice(
            (debugger.step, debugger.step_over, debugger.step_into, debugger.step_back, debugger.step_out, debugger.next_iteration)
        )
        move()
    overlay_at(debugger, view).as_data()
    debugger.run()
    overlay_at(debugger, view).as_data()
    type_into(debugger, dice)


def _made_up(model: Model, dice: random.Random) -> dict[str, np.ndarray]:
    """Small inputs of the declared types and shapes."""
    made: dict[str, np.ndarray] = {}
    for one in model.inputs:
        lengths = [min(dimension.least, 40) or dice.randrange(3) for dimension in one.shape.dimensions or ()]
        if len(lengths) > 12 or one.element_type is None or one.element_type.dtype == object or one.element_type.dtype.names:
            continue
        made[one.name] = np.full(lengths if np.prod(lengths) < 1e6 else (1,), dice.choice((0, 1, 1, 2, 7)), one.element_type.dtype)
    return made


# -- a process for the cases, and one that watches it ---------------------------------------------------------------


def _most_bytes_held() -> int:
    """The most memory that this process has held so far.

    The kernel's own mark for this process, where it keeps one: `ru_maxrss` starts at what the process that started this one held.
    """
    status = Path("/proc/self/status")
    marks = re.findall(r"^VmHWM:\s*(\d+) kB", status.read_text(), re.M) if status.exists() else []
    return int(marks[0] if marks else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024


def _work(report: Connection, files: Sequence[Path], seed: int, first: int, until: float) -> None:
    """Goes through cases until the time is up, saying before each which it is, and after each what was found."""
    # Not the bound itself, which is measured: only to keep a runaway case from taking the whole machine.
    resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
    chosen = originals(files)
    at_first = _most_bytes_held()
    for number in itertools.count(first):
        if number > first and time.time() > until:
            report.send(None)
            return
        report.send(number)
        original, document, weights, dice = case_of(chosen, seed, number)
        faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
        try:
            go_through(document, weights, original.inputs, dice)
            found = ""
        except Exception:
            found = traceback.format_exc(limit=-8)
        faulthandler.cancel_dump_traceback_later()
        used = _most_bytes_held() - at_first
        if used > MOST_BYTES:
            found = f"took {used / 2**20:.0f} MB\n{found}"
        report.send(found)
        if used > MOST_BYTES:
            return


def fuzz(seconds: float, seed: int, files: Sequence[Path] = (), first: int = 0) -> Iterator[Finding | int]:
    """Findings as they come, and in the end the number of cases gone through."""
    chosen = originals(files)
    spawn = multiprocessing.get_context("spawn")
    until = time.time() + seconds
    next_case, done = first, 0
    died: int | None = None
    while done == 0 or died == next_case or time.time() < until:
        receiver, sender = spawn.Pipe(duplex=False)
        worker = spawn.Process(target=_work, args=(sender, files, seed, next_case, until), daemon=True)
        worker.start()
        sender.close()
        running: int | None = None
        try:
            while (running := receiver.recv()) is not None:
                found = receiver.recv()
                done += 1
                next_case = running + 1
                if found:
                    yield Finding(running, case_of(chosen, seed, running)[0].name, found)
        except EOFError:
            if running is not None and running >= next_case:
                worker.join()
                # Once more alone: on a busy machine the first time may have been nobody's fault.
                if running == died:
                    name = case_of(chosen, seed, running)[0].name
                    yield Finding(running, name, f"crash, or more than {MOST_SECONDS} s (exit {worker.exitcode})")
                next_case, died = running + (running == died), running
        worker.join()
        if running is None:
            break
    yield done


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Damage model files at random; print what that brings about.")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="models to damage (default: the samples)")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="only this case, in this process")
    parser.add_argument("--keep", type=Path, help="a folder for the files of what is found")
    options = parser.parse_args(arguments)
    if options.case is not None:
        original, document, weights, dice = case_of(originals(options.files), options.seed, options.case)
        _keep(options.keep, options.case, document, weights)
        go_through(document, weights, original.inputs, dice)
        return 0
    found = 0
    for one in fuzz(options.seconds, options.seed, options.files):
        if isinstance(one, int):
            print(f"{one} cases, {found} findings")
        else:
            found += 1
            print(one, flush=True)
            _keep(options.keep, one.case, *case_of(originals(options.files), options.seed, one.case)[1:3])
    return int(found > 0)


def _keep(folder: Path | None, number: int, document: bytes, weights: bytes) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / (f"case_{number}" + _suffix(document))
        target.write_bytes(document)
        target.with_suffix(".bin").write_bytes(weights)


def _suffix(document: bytes) -> str:
    return ".onnx" if document[:1] == b"\x08" else ".zip" if document[:2] == b"PK" else ".xml"


if __name__ == "__main__":
    sys.exit(main())
