"""The inputs panel: values from files and from fields, what is wrong with them, and whether the
run has them.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import parser
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import TextInput

import loopscope
from loopscope import builder
from tests.app.screens.test_debugger import page_text

Visit = Callable[..., AppTest]
NOT_RUN = "Not run yet"


def panel(opened: Visit, sample: str = "decoder") -> AppTest:
    return opened(model=f"sample:{sample}", tab="setup")


def upload(app: AppTest, name: str, *arrays: np.ndarray) -> AppTest:
    file = io.BytesIO()
    np.save(file, arrays[0]) if name.endswith(".npy") else np.savez(file, *arrays)
    uploader = next(one for one in app.file_uploader if str(one.key).startswith("inputs_files"))
    uploader.set_value([(name, file.getvalue(), "application/octet-stream")]).run()
    assert not app.exception
    return app


def field(app: AppTest, name: str) -> TextInput:
    return next(one for one in app.text_input if one.label.replace("\\", "").startswith(name))


def test_a_single_array_goes_to_the_input_that_it_is_named_after(opened: Visit) -> None:
    app = upload(panel(opened), "most_words.npy", np.array(5))
    assert not app.error
    assert field(app, "most_words").value == "5"


def test_a_single_array_for_nobody_is_refused(opened: Visit) -> None:
    app = panel(opened)
    before = [one.value for one in app.text_input]
    upload(app, "one.npy", np.array(5))
    assert "is a single array, and the model has 3 inputs" in app.error[0].value.replace("\\", "")
    assert [one.value for one in app.text_input] == before


def test_a_single_array_is_for_the_only_input(opened: Visit) -> None:
    assert field(upload(panel(opened, "collatz"), "x.npy", np.array(5)), "number").value == "5"


@pytest.mark.parametrize("mended", ["made up", "from a file"])
def test_what_was_refused_is_forgotten_once_there_is_another_value(
    opened: Visit, mended: str
) -> None:
    app = panel(opened, "collatz")
    field(app, "number").set_value("three").run()
    assert "is not a value of type i64" in app.error[0].value
    if mended == "made up":
        app.button("inputs_random").click().run()
    else:
        upload(app, "number.npy", np.array(9))
    app.button("inputs_run").click().run()
    assert not app.error


def test_values_that_the_run_does_not_have_are_told(opened: Visit) -> None:
    app = panel(opened, "collatz")
    assert NOT_RUN not in page_text(app)
    field(app, "number").set_value("9").run()
    assert NOT_RUN in page_text(app)
    app.button("inputs_run").click().run()
    assert NOT_RUN not in page_text(app)


SEQUENCE = """<ir_version: 9, opset_import: ["" : 18]>
main (seq(float[n]) rows, float[2] x) => (int64 count, float[2] y) {
    count = SequenceLength (rows)
    y = Neg (x)
}"""


def test_a_sequence_is_made_up_again_as_a_sequence(opened: Visit) -> None:
    """Its made-up tensors were asked for one shape, when the model was opened and when others
    were asked for.
    """
    app = opened()
    document = parser.parse_model(SEQUENCE).SerializeToString()
    app.file_uploader("opener_upload").set_value(
        [("model.onnx", document, "application/octet-stream")]
    ).run()
    assert not app.exception
    app.button("header_generated").click().run()
    before = dict(app.session_state["loopscope"].model.draft)
    next(one for one in app.number_input if str(one.key).startswith("inputs_seed")).set_value(
        7
    ).run()
    app.button("inputs_random").click().run()
    after = app.session_state["loopscope"].model.draft
    assert (
        [one.shape for one in after["rows"]]
        == [one.shape for one in before["rows"]]
        == [(3,), (3,)]
    )
    assert not np.array_equal(after["rows"][0], before["rows"][0])
    app.button("inputs_run").click().run()
    assert not app.exception
    assert not app.error


def test_inputs_that_did_not_fit_are_no_run_to_compare_with(opened: Visit, tmp_path: Path) -> None:
    graph = builder.Graph("8 alone")
    folded = builder.ops.reshape(
        graph.parameter("x", "f32", [None]), np.array([2, 4]), special_zero=False
    )
    loopscope.write_model(graph.model({"folded": folded}), tmp_path / "eight.xml")
    app = opened(model=str(tmp_path / "eight.xml"), step="1", view="compare")
    assert app.session_state["loopscope"].model.inputs["x"].shape == (8,)
    kinds = app.segmented_control("compare_kind").options
    assert kinds[0] == "OpenVINO"
    assert "Other inputs" not in kinds
