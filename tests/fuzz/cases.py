"""Which model a case damages, and how: equal seeds and numbers give equal files."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx.parser

from loopscope_samples import samples
from tests.engine.read.onnx_models import CASES
from tests.engine.read.test_beams import searches
from tests.fuzz import onnx_mutants, onnx_pieces
from tests.fuzz.damage import mutated

_ARCHIVE = Path(__file__).parents[1] / "engine" / "read" / "files" / "while_loop_saved_model.zip"
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
    "sequences.onnx": """agraph (float[4, 3] x, int64 at) => (float[N, M] y, float[3] part, int64 count) {
        rows = SplitToSequence <axis: int = 0, keepdims: int = 0> (x)
        doubled = SequenceMap (rows) <body = each (float[3] row) => (float[3] twice) { twice = Add (row, row) }>
        y = ConcatFromSequence <axis: int = 0, new_axis: int = 1> (doubled)
        part = SequenceAt (rows, at)
        count = SequenceLength (rows)
    }""",
    "texts.onnx": """agraph (string[3] names, float[3] x) => (string[3] all, bool[3] found) {
        all = StringConcat (names, names)
        found = RegexFullMatch <pattern: string = "a.*"> (names)
    }""",
    "narrow.onnx": """agraph (bfloat16[3] x, int64 trips) => (bfloat16[3] y, bfloat16 z) {
        y, z = Loop (trips, , x) <body = step (int64 number, bool go, bfloat16[3] v) => (bool again, bfloat16[3] w, bfloat16 sum) {
            again = Identity (go)
            w = Add (v, v)
            sum = ReduceSum <keepdims: int = 0> (w)
        }>
    }""",
}
_SHARES = (("made", 0.4), ("onnx", 0.35), ("ir", 0.246), ("archive", 0.004))
"""How many cases begin with what; archives are converted by OpenVINO, which takes seconds."""


@dataclass(frozen=True, slots=True)
class Original:
    """A sound model as the bytes of its files, with inputs that it runs on."""

    name: str
    document: bytes
    weights: bytes = b""
    inputs: tuple[Mapping[str, Any], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Case:
    """What goes through the stages, and the dice that choose on the way."""

    name: str
    document: bytes
    weights: bytes
    inputs: tuple[Mapping[str, Any], ...]
    dice: random.Random


@dataclass(frozen=True, slots=True)
class Originals:
    """The sound models of each kind."""

    onnx: tuple[Original, ...]
    ir: tuple[Original, ...]
    archive: tuple[Original, ...]
    files: tuple[Original, ...] = ()
    """Those that somebody has named, which are damaged instead of all others."""

    @property
    def all(self) -> tuple[Original, ...]:
        return self.files or (*self.onnx, *self.ir, *self.archive)


def originals(files: Sequence[Path] = ()) -> Originals:
    """The files given, or all sample models, ONNX models with bodies, sequences, texts, narrow
    floats and searches, and a zip archive.
    """
    if files:
        return Originals((), (), (), tuple(_original(path, ()) for path in files))
    ir = [
        _original(one.model, tuple(given.arrays() for given in one.sets if not given.never_ends))
        for one in samples()
    ]
    written = [
        Original(name, onnx.parser.parse_model(_HEAD + text).SerializeToString())
        for name, text in _ONNX.items()
    ]
    written += [
        Original(f"{one.name}.onnx", one.model().SerializeToString(), b"", (one.inputs,))
        for one in CASES
    ]
    written += [
        Original(f"{name}.onnx", data, b"", (given,)) for name, (data, given) in searches().items()
    ]
    return Originals(tuple(written), tuple(ir), (Original(_ARCHIVE.name, _ARCHIVE.read_bytes()),))


def _original(path: Path, inputs: tuple[Mapping[str, Any], ...]) -> Original:
    weights = path.with_suffix(".bin")
    return Original(
        f"{path.parent.name}/{path.name}",
        path.read_bytes(),
        weights.read_bytes() if weights.exists() else b"",
        inputs,
    )


def case_of(sound: Originals, seed: int, number: int) -> Case:
    """One case."""
    dice = random.Random(f"{seed}:{number}")
    if sound.files:
        return _damaged(dice, dice.choice(sound.files))
    kind = dice.choices([name for name, _ in _SHARES], [share for _, share in _SHARES])[0]
    if kind == "made":
        return _made(dice)
    of_kind = {"onnx": sound.onnx, "ir": sound.ir, "archive": sound.archive}[kind]
    # Small ones more often: what goes wrong in a large model does so in a small one too, at a tenth
    # of the time.
    return _damaged(dice, dice.choices(of_kind, [1 / len(one.document) for one in of_kind])[0])


def _made(dice: random.Random) -> Case:
    proto = onnx_pieces.made(dice)
    for _ in range(dice.choice((0, 0, 0, 1, 1, 2, 4))):
        try:
            onnx_mutants.changed(dice, proto)
        except (IndexError, ValueError, TypeError):  # there is nothing of the kind in it
            continue
    return Case(
        " ".join(node.op_type for node in proto.graph.node),
        proto.SerializeToString(),
        b"",
        (),
        dice,
    )


def _damaged(dice: random.Random, original: Original) -> Case:
    # A sound one now and then: what is typed into it gets further.
    sound = dice.random() < 0.1
    document, weights = (
        (original.document, original.weights)
        if sound
        else mutated(dice, original.document, original.weights)
    )
    return Case(original.name, document, weights, original.inputs, dice)
