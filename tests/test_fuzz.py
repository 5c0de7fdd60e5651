"""A minute of damaged model files: whatever is in them, nothing comes out but the engine's own errors."""

from __future__ import annotations

import random

import numpy as np
import pytest
from onnx.parser import parse_model

import engine
from engine.errors import EngineError
from engine.explain.ask import ask
from tests.engine.ops.test_onnx_older import model
from tests.engine.read.onnx_models import CASES
from tests.fuzz import fuzz, go_through, originals

LOOP_OF_X = """<ir_version: 8, opset_import: ["" : 17]>
main (float[3] x) => (float[3] y) {
  trips = Constant <value_int = 4> ()
  y = Loop (trips, , x) <body = step (int64 number, bool go, float[3] v) => (bool again, float[3] w) {
    again = Identity (go)
    w = Add (v, v)
  }>
}"""
FOUND = {
    "a length of 19 digits": ("for_loop", 'shape=""', 'shape="9223372036854775807"'),
    "another axis": ("beam_search", 'version="opset8"', 'version="opset7"'),
}
"""What was found once: a sample, and what was changed in it."""


@pytest.mark.parametrize(("sample", "old", "new"), FOUND.values(), ids=FOUND.keys())
def test_what_was_found_once(sample: str, old: str, new: str) -> None:
    one = next(original for original in originals() if original.name.startswith(f"{sample}/"))
    document = one.document.replace(old.encode(), new.encode())
    assert document != one.document
    go_through(document, one.weights, one.inputs, random.Random(0))


def _values_of_all_forms() -> dict[str, tuple[bytes, dict[str, np.ndarray]]]:
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    maps = model("ZipMap", 1, [rows], domain="ai.onnx.ml", classlabels_strings=["no", "yes"])
    return {"maps": (maps, {"x0": rows}), **{case.name: (case.model().SerializeToString(), case.inputs) for case in CASES}}


FORMS = _values_of_all_forms()


@pytest.mark.parametrize(("document", "inputs"), FORMS.values(), ids=FORMS.keys())
def test_values_that_are_no_tensors_go_all_the_way(document: bytes, inputs: dict[str, np.ndarray]) -> None:
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
    debugger = engine.Debugger(engine.read_model(parse_model(LOOP_OF_X).SerializeToString()), {"x": np.arange(3, dtype=np.float32)})
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
    # It is no address of anything, and every refusal is one sentence.
    assert len(told) >= 2
    assert not [sentence for sentence in told if "\n" in sentence]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_damaged_files_bring_about_nothing_but_the_engines_errors() -> None:
    *found, cases = fuzz(seconds=60, seed=2026)
    assert not found, "\n".join(str(one) for one in found[:5])
    assert isinstance(cases, int)
    assert cases > 20
