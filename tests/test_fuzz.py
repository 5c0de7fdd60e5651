"""Ten seconds of damaged model files: whatever is in them, nothing comes out but the engine's
own errors.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto
from onnx.parser import parse_model

import loopscope
from loopscope.checks.check import check
from loopscope.errors import EngineError
from loopscope.executor.machine.regions import is_true, trip_count
from loopscope.explain.ask import ask
from loopscope.ir.model import LayerId, Node
from loopscope.ops.catalogue import CATALOGUE
from tests.engine.drafts import BOOL, F32, I64, Draft, loop
from tests.engine.ops.test_onnx_older import model
from tests.engine.read.onnx_models import CASES
from tests.fuzz.cases import originals
from tests.fuzz.data_files import DATA, DataKind
from tests.fuzz.stages import go_through
from tests.fuzz.subjects import Data
from tests.fuzz.watched import Finding, Plan, fuzz

LOOP_OF_X = """<ir_version: 8, opset_import: ["" : 17]>
main (float[3] x) => (float[3] y) {
  trips = Constant <value_int = 4> ()
  y = Loop (trips, , x) <body = step (int64 number, bool go, float[3] v) => (bool again, float[3] w) {
    again = Identity (go)
    w = Add (v, v)
  }>
}"""
FILES_FOUND = Path(__file__).parent / "fuzz" / "found"
SECONDS = float(os.environ.get("FUZZ_SECONDS", "10"))
"""How long models are damaged; ``python -m tests.fuzz`` does it as long, from any seed, in
several processes.
"""
EVERY = 1e9
"""The share of models that go through every stage."""
FOUND = {
    "a length of 19 digits": ("for_loop", 'shape=""', 'shape="9223372036854775807"'),
    "another axis": ("beam_search", 'version="opset8"', 'version="opset7"'),
    "a condition that is also an output, after another": (
        "for_loop",
        'external_port_id="-1" internal_layer_id',
        'external_port_id="4" internal_layer_id',
    ),
    "a body in an operation that has none, in a loop that is unrolled": (
        "decoder",
        'type="TopK" version="opset11">',
        (
            'type="TopK" version="opset11"><body><layers><layer id="7" name="least" type="Parameter" version="opset1">'
            '<data shape="" element_type="f32"/><output><port id="0"/></output></layer></layers><edges/></body>'
        ),
    ),
    "a constant that is fed": (
        "lstm_melody",
        'name="hidden_next" type="Result" version="opset1">',
        'name="hidden_next" type="Const" version="opset1"><data element_type="f32" shape="1, 4" offset="0" size="16"/>',
    ),
}
"""What was found once: a sample, and what was changed in it."""


@pytest.mark.parametrize(("sample", "old", "new"), FOUND.values(), ids=FOUND.keys())
def test_what_was_found_once(sample: str, old: str, new: str) -> None:
    one = next(original for original in originals().all if original.name.startswith(f"{sample}/"))
    document = one.document.replace(old.encode(), new.encode())
    assert document != one.document
    go_through(document, one.weights, one.inputs, random.Random(0), share=EVERY)


FOUND_IN_ONNX = {
    "a SequenceMap without its second input": """main (float[2] x) => (seq(float[2]) y) {
            s = SequenceConstruct (x, x)
            y = SequenceMap (s, nothing) <body = each (float[2] e, float least) => (float[2] t) { t = Clip (e, least) }>
        }""",
    "a trip count that is the same as nothing": """main (float[2] x) => (float[2] y) {
            trips = Identity (nothing)
            y = Loop (trips, , x) <body = step (int64 i, bool go, float[2] v) => (bool again, float[2] w) {
                again = Identity (go)
                w = Add (v, v)
            }>
        }""",
    "an If and a Loop in a function without their conditions": """main (float[2] x) => (float[2] y) {
            a = own.f (x)
            y = own.g (a)
        }
        <domain: "own", opset_import: ["" : 17]>
        f (p, go) => (q) {
            q = Loop (, go, p) <body = step (int64 i, bool on, float[2] v) => (bool again, float[2] w) {
                again = Identity (on)
                w = Neg (v)
            }>
        }
        <domain: "own", opset_import: ["" : 17]>
        g (p, go) => (q) {
            q = If (go) <then_branch = a () => (float[2] r) { r = Neg (p) }, else_branch = b () => (float[2] r) { r = Abs (p) }>
        }""",
    "an empty input of an enormous shape": "main (float[0,4611686018427387904,4611686018427387904] x) => (float[2] y) { y = Shape (x) }",
    "an input of 70 dimensions": f"main (float[{','.join('1' * 70)}] x) => (int64[70] y) {{ y = Shape (x) }}",
    "an enormous row of which none is made": """main (int64 trips) => (float[N] y) {
            y = Loop (trips, ) <body = step (int64 number, bool go) => (bool again, float[4611686018427387904,64] row) {
                again = Identity (go)
                row = own.none (number)
            }>
        }
        <domain: "own", opset_import: ["" : 17]> none (p) => (q) { q = Cast <to = 1> (p) }""",
    "a Scan of old whose body has fewer inputs than it scans": """main (float[1, 3, 2] x) => (float[1, 3, 2] y) {
            y = Scan (x, x) <num_scan_inputs: int = 1, body = none () => (float[2] a, float[2] b) { a = Constant <value_float = 1.0> ()
                b = Identity (a) }>
        }""",
    "a Scan of old that scans nothing": """main (float[1, 3, 2] x, int64[1] n) => (float[1, 3, 2] y) {
            y = Scan (n, x) <num_scan_inputs: int = 0, body = none (float[2] a) => (float[2] b, float[2] c) { b = Neg (a) c = Abs (a) }>
        }""",
    "a constant of an enormous shape": """main () => (int64[3] y)
            <float[0,4611686018427387904,4611686018427387904] c = {}> { y = Shape (c) }""",
    "a tensor where a number belongs": "main (uint8 x) => (uint8 y) { y = Mod <fmod: tensor = float[0] {}> (x, x) }",
    "a number that is said to be a type": "main () => (float y) { y = Constant <value_float = 1.0> () }",
}


@pytest.mark.parametrize("text", FOUND_IN_ONNX.values(), ids=FOUND_IN_ONNX.keys())
def test_what_was_found_once_in_onnx(text: str) -> None:
    proto = parse_model('<ir_version: 8, opset_import: ["" : 17, "own" : 1]>' + text)
    if "Scan (" in text:
        proto.opset_import[0].version = 8
    for tensor in proto.graph.initializer:
        tensor.raw_data = b""
    for node in proto.graph.node:
        for attribute in node.attribute if node.op_type == "Constant" else ():
            attribute.type = AttributeProto.TYPE_PROTO
        node.input[:] = ["" if name == "nothing" else name for name in node.input]
    for seed in range(4):
        go_through(proto.SerializeToString(), b"", [], random.Random(seed), share=EVERY)


@pytest.mark.parametrize(
    "file",
    sorted(one for one in FILES_FOUND.iterdir() if one.suffix != ".bin"),
    ids=lambda file: file.stem,
)
def test_files_that_were_found(file: Path) -> None:
    weights = file.with_suffix(".bin")
    for seed in range(8):
        go_through(
            file.read_bytes(),
            weights.read_bytes() if weights.exists() else b"",
            [],
            random.Random(seed),
            share=EVERY,
        )


def test_what_is_left_out_is_said_in_words() -> None:
    with pytest.raises(ValueError, match="the condition is left out, expected one element"):
        is_true(None)
    with pytest.raises(ValueError, match="the trip count is not a tensor, expected one element"):
        trip_count((np.int64(3),))


def test_texts_that_double_in_every_iteration_are_bounded() -> None:
    """Each element of an array of texts counted as 8 bytes, however long it was."""
    text = """main (string[1] x) => (string[1] y) {
        trips = Constant <value_int = 60> ()
        y = Loop (trips, , x) <body = step (int64 i, bool go, string[1] v) => (bool again, string[1] w) {
            again = Identity (go)
            w = StringConcat (v, v)
        }>
    }"""
    document = parse_model('<ir_version: 9, opset_import: ["" : 20]>' + text).SerializeToString()
    with pytest.raises(loopscope.RunStopped, match="StringConcat would have"):
        loopscope.run(
            loopscope.read_model(document),
            {"x": np.array(["ab"], object)},
            limits=loopscope.Limits(memory_bytes=2**22),
        )


GRAMS = {
    "as many skipped as there are numbers": (1, 2, 2**31 - 1, [0], "1,000,000 skipped"),
    "no length": (0, 2, 0, [0], "grams of 0 to 2"),
    "the longest shorter than the shortest": (3, 2, 0, [0], "grams of 3 to 2"),
    "an enormous number of a gram": (1, 1, 0, [2**40], "1099511627777 elements"),
}


@pytest.mark.parametrize(
    ("least", "most", "skipped", "indexes", "says"), GRAMS.values(), ids=GRAMS.keys()
)
def test_grams_are_bounded(
    least: int, most: int, skipped: int, indexes: list[int], says: str
) -> None:
    """The onnx package went through all of them, and made an array for all numbers up to the
    greatest.
    """
    attributes: dict[str, Any] = {
        "min_gram_length": least,
        "max_gram_length": most,
        "max_skip_count": skipped,
        "ngram_indexes": indexes,
    }
    given = np.array([1, 2, 3], np.int64)
    document = model(
        "TfIdfVectorizer", 9, [given], mode="TF", ngram_counts=[0], pool_int64s=[1], **attributes
    )
    with pytest.raises(loopscope.RunStopped, match=says):
        loopscope.run(loopscope.read_model(document), {"x0": given})


def test_two_layers_of_one_id_of_which_one_has_no_outputs() -> None:
    """What was known of the Result of a body was that of the other layer: nothing at all."""
    outer, body = Draft(), Draft()
    value = body.parameter("v", F32, (2,))
    again, result = body.result(body.const(True, BOOL)), body.result(value)
    body.nodes.append(Node(LayerId(result.layer), "twin", "Nothing", "opset1"))
    made = loop(
        outer, body, outer.const(3, I64), outer.const(True, BOOL), again=again, last=[result]
    )
    outer.result(made)
    assert not check(outer.model(), CATALOGUE).ok


def _values_of_all_forms() -> dict[str, tuple[bytes, dict[str, np.ndarray]]]:
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    maps = model("ZipMap", 1, [rows], domain="ai.onnx.ml", classlabels_strings=["no", "yes"])
    return {
        "maps": (maps, {"x0": rows}),
        **{case.name: (case.model().SerializeToString(), case.inputs) for case in CASES},
    }


FORMS = _values_of_all_forms()


@pytest.mark.parametrize(("document", "inputs"), FORMS.values(), ids=FORMS.keys())
def test_values_that_are_no_tensors_go_all_the_way(
    document: bytes, inputs: dict[str, np.ndarray]
) -> None:
    """The overlay once knew nothing of sequences, maps and optionals."""
    for seed in range(2):
        go_through(document, b"", [inputs], random.Random(seed))


TYPED = {
    "nothing to take the mean of": "mean(x[0:0])",
    "nothing to take the spread of": "std(x[0:0]) > 1",
    "a number and a name in one": "0xfor 1",
    "a number beyond all numbers": "9**9**9",
    "a step of nothing": "x[::0]",
    "as deep as it may be": "-" * 490 + "1",
    "text that is none": "\ud800",
    "an iteration beyond all": "x[i - 9223372036854775807]",
    "a name that nobody quoted": "_quoted_99999999999999999999",
}
"""What once brought about a warning, or stands for a kind of it."""


@pytest.mark.parametrize("text", TYPED.values(), ids=TYPED.keys())
def test_what_was_typed_once(text: str) -> None:
    debugger = loopscope.Debugger(
        loopscope.read_model(parse_model(LOOP_OF_X).SerializeToString()),
        {"x": np.arange(3, dtype=np.float32)},
    )
    debugger.run()
    told: list[str] = []
    for use in (
        debugger.watches.evaluate,
        lambda text: debugger.breakpoints.add("main", text),
        lambda text: ask(debugger, "main/Loop_1", text),
        debugger.value,
        debugger.run_to,
    ):
        try:
            use(text)
        except EngineError as error:
            told.append(str(error))
    # It is not an address of anything, and every refusal is one sentence.
    assert len(told) >= 2
    assert not [sentence for sentence in told if "\n" in sentence]


@pytest.mark.parametrize("kind", DATA.values(), ids=DATA.keys())
def test_files_of_data_are_read_when_nobody_has_damaged_them(kind: DataKind) -> None:
    assert all(kind.use(whole, random.Random(0)) for whole in kind.sound())


@pytest.mark.parametrize("kind", DATA.values(), ids=DATA.keys())
def test_damaged_files_of_data_bring_about_nothing_but_the_engines_errors(kind: DataKind) -> None:
    """Of many more ``python -m tests.fuzz --data`` takes care."""
    damaged = Data(kind, kind.sound())
    for number in range(60):
        damaged.go(damaged.case(2026, number), lambda stage: None, 1.0)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 240)
def test_damaged_files_bring_about_nothing_but_the_engines_errors() -> None:
    *before, cases = fuzz(Plan(seed=2026, until=time.time() + SECONDS))
    found = [str(one) for one in before if isinstance(one, Finding)]
    assert not found, "\n".join(found[:5])
    assert isinstance(cases, int)
    assert cases > 20
