"""Gradients of ONNX's losses over classes, against central differences for each variant, and
against torch's.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import loopscope
from tests.engine.transform.test_gradients_of_onnx_operations import graph

LABELS = {
    "plain": "labels = Constant <value = int64[3] {2, 0, 2}> ()",
    "some ignored": "labels = Constant <value = int64[3] {2, -1, 1}> ()",
    "pixels": "labels = Constant <value = int32[3,2] {2, 0, 1, 1, 3, 0}> ()",
}
SHAPES = {"plain": "3,4", "some ignored": "3,4", "pixels": "3,4,2"}
OPTIONS = {"plain": (), "some ignored": ("ignore_index = -1",), "pixels": ("ignore_index = 3",)}


@pytest.mark.parametrize("weights", ["", ", w"])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(
    "loss",
    [
        "NegativeLogLikelihoodLoss",
        "SoftmaxCrossEntropyLoss",
        "SoftmaxCrossEntropyLoss with its logarithms",
    ],
)
def test_a_loss(loss: str, labels: str, reduction: str, weights: str) -> None:
    operation, _, both = loss.partition(" ")
    options = ", ".join((f'reduction = "{reduction}"', *OPTIONS[labels]))
    outputs, target = (
        ("y, p", "pp = Mul(p, p) q = ReduceSum<keepdims = 0>(pp) v = Add(q, u)")
        if both
        else ("y", "v = Identity(u)")
    )
    body = f"{LABELS[labels]} {outputs} = {operation}<{options}>(x, labels{weights}) u = Mul(y, y) {target}"
    model = graph(22, f"float[{SHAPES[labels]}] x, float[4] w", body)
    random = np.random.default_rng(4)
    shapes = [tuple(map(int, one.split(","))) for one in (SHAPES[labels], "4")]
    values = [random.uniform(0.2, 1.8, shape).astype(np.float32) for shape in shapes]
    found = loopscope.check_gradient(model, values, "s", ["x", "w"] if weights else ["x"])
    assert found.ok, found
    assert found.compared == sum(value.size for value in values[: 2 if weights else 1])


@pytest.mark.parametrize("shape", ["n,4", "n,c,d"])
def test_lengths_that_are_known_when_the_model_runs(shape: str) -> None:
    labels = "labels = ArgMax<axis = 1, keepdims = 0>(x)"
    model = graph(
        22, f"float[{shape}] x", f"{labels} y = SoftmaxCrossEntropyLoss(x, labels) v = Mul(y, y)"
    )
    value = (
        np.random.default_rng(4)
        .uniform(0.2, 1.8, (3, 4, 2)[: shape.count(",") + 1])
        .astype(np.float32)
    )
    found = loopscope.check_gradient(model, [value], "s", ["x"])
    assert found.ok, found


SCORES = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5], [0.1, 0.2, 0.3]], np.float32)
CLASS_WEIGHTS = np.array([0.5, 1.5, 2.0], np.float32)
OF_TORCH = {
    ("mean", ""): [
        [0.08764519607, 0.019556286635, -0.107201482705],
        [0.351656988011, -0.399248586085, 0.047591598075],
    ],
    ("mean", ", w"): [
        [0.100165938366, 0.022350041869, -0.122515980235],
        [0.301420275438, -0.342213073788, 0.04079279835],
    ],
    ("sum", ""): [
        [0.17529039214, 0.039112573271, -0.214402965411],
        [0.703313976022, -0.798497172171, 0.095183196149],
    ],
    ("sum", ", w"): [
        [0.35058078428, 0.078225146541, -0.428805930821],
        [1.054970964033, -1.197745758256, 0.142774794224],
    ],
}
"""By torch 2.13: cross_entropy(SCORES, [2, 1, -1], weight, ignore_index=-1).backward(), the rows
that count; the last one gets 0.
"""


@pytest.mark.parametrize(("reduction", "weights"), OF_TORCH)
@pytest.mark.parametrize("in_two", [False, True], ids=["at once", "logarithms first"])
def test_the_gradient_of_a_loss_is_that_of_torch(
    reduction: str, weights: str, in_two: bool
) -> None:
    options = f'<reduction = "{reduction}", ignore_index = -1>'
    at_once = f"s = SoftmaxCrossEntropyLoss{options}(x, labels{weights})"
    apart = (
        f"p = LogSoftmax<axis = 1>(x) s = NegativeLogLikelihoodLoss{options}(p, labels{weights})"
    )
    text = f"""<ir_version: 10, opset_import: ["" : 22]> g (float[3,3] x, float[3] w) => (float s)
        {{ labels = Constant <value = int64[3] {{2, 1, -1}}> () {apart if in_two else at_once} }}"""
    model = loopscope.gradients(
        loopscope.read_model(parser.parse_model(text).SerializeToString()), "s", "x"
    )
    found = loopscope.run(model, {"x": SCORES, "w": CLASS_WEIGHTS}).outputs[-1]
    # f32: a few roundings of numbers of about 1.
    np.testing.assert_allclose(
        found, np.array([*OF_TORCH[reduction, weights], [0, 0, 0]]), atol=1e-6
    )


def test_the_mean_of_a_loss_leaves_out_labels_of_minus_one() -> None:
    """As ONNX Runtime, and as for any other number that is ignored; the onnx package counts
    them.
    """
    text = """<ir_version: 10, opset_import: ["" : 22]> g (float[3,3] x) => (float s)
        { labels = Constant <value = int64[3] {2, 1, -1}> () s = NegativeLogLikelihoodLoss<ignore_index = -1>(x, labels) }"""
    (found,) = loopscope.run(
        loopscope.read_model(parser.parse_model(text).SerializeToString()), {"x": SCORES}
    ).outputs
    assert found == pytest.approx(-(2.0 + 0.25) / 2)
