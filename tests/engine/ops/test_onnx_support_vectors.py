"""SVMClassifier's probabilities of several classes are those of ONNX Runtime, and by their
definition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from scipy import optimize

import loopscope
from loopscope.ops.onnx.linear_models import coupled


def _model(classes: int, attributes: dict[str, Any]) -> tuple[bytes, np.ndarray]:
    """A classifier of random support vectors, and what it is asked."""
    random = np.random.default_rng(classes)
    counts, pairs = [3 + number for number in range(classes)], classes * (classes - 1) // 2
    declared = {
        "classlabels_ints": list(range(10, 10 + classes)),
        "kernel_type": "RBF",
        "kernel_params": [0.3, 0.5, 3.0],
        "vectors_per_class": counts,
        "support_vectors": random.normal(size=sum(counts) * 4).tolist(),
        "coefficients": random.normal(size=sum(counts) * (classes - 1)).tolist(),
        "rho": random.normal(size=pairs).tolist(),
        "prob_a": (-1 - random.random(pairs)).tolist(),
        "prob_b": random.normal(size=pairs).tolist(),
        **attributes,
    }
    declared = {name: value for name, value in declared.items() if value is not None}
    node = helper.make_node(
        "SVMClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", **declared
    )
    kind = TensorProto.STRING if "classlabels_strings" in declared else TensorProto.INT64
    graph = helper.make_graph(
        [node],
        "svm",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 4])],
        [
            helper.make_tensor_value_info("label", kind, [None]),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, None]),
        ],
    )
    opsets = [helper.make_opsetid("ai.onnx.ml", 1), helper.make_opsetid("", 17)]
    data: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return data, random.normal(size=(40, 4)).astype(np.float32)


@pytest.mark.parametrize("classes", [3, 4, 7])
@pytest.mark.parametrize("kernel", ["RBF", "LINEAR", "POLY", "SIGMOID"])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"])
def test_as_onnx_runtime(classes: int, kernel: str, transform: str) -> None:
    """Within what f32 loses there over the iterations; its PROBIT cancels near 1/2 and in the
    tails. Here all is f64.
    """
    data, asked = _model(classes, {"kernel_type": kernel, "post_transform": transform})
    label, scores = loopscope.run(loopscope.read_model(data), [asked]).outputs
    theirs = onnxruntime.InferenceSession(data).run(None, {"x": asked})
    np.testing.assert_array_equal(label, theirs[0])
    relative, absolute = (1e-2, 2e-4) if transform == "PROBIT" else (2e-4, 2e-5)
    rounded_away = np.isinf(theirs[1])
    np.testing.assert_allclose(
        scores[~rounded_away], theirs[1][~rounded_away], rtol=relative, atol=absolute
    )
    assert (scores[rounded_away] * np.sign(theirs[1][rounded_away]) > 4).all()


def test_labels_that_are_texts() -> None:
    data, asked = _model(
        3, {"classlabels_ints": None, "classlabels_strings": ["cat", "dog", "eel"]}
    )
    label, scores = loopscope.run(loopscope.read_model(data), [asked]).outputs
    theirs = onnxruntime.InferenceSession(data).run(None, {"x": asked})
    assert label.tolist() == theirs[0].tolist()
    np.testing.assert_allclose(scores, theirs[1], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("classes", [3, 5])
def test_coupling_minimises_what_the_paper_says(classes: int) -> None:
    """To the bound that libsvm stops at: the gradient is even to 0.005 / k."""
    chances = np.random.default_rng(classes).uniform(0.05, 0.95, (6, classes, classes))
    below = np.tril_indices(classes, -1)
    chances[:, below[0], below[1]] = 1 - chances.transpose(0, 2, 1)[:, below[0], below[1]]
    for pairwise, found in zip(chances, coupled(chances), strict=True):
        assert found.sum() == pytest.approx(1)

        def cost(p: Any, r: np.ndarray = pairwise) -> float:
            return float(
                sum(
                    (r[j, i] * p[i] - r[i, j] * p[j]) ** 2
                    for i in range(classes)
                    for j in range(classes)
                    if i != j
                )
            )

        whole: Any = {"type": "eq", "fun": lambda p: p.sum() - 1}
        start = np.full(classes, 1 / classes)
        best = optimize.minimize(
            cost, start, bounds=[(0, 1)] * classes, constraints=[whole], options={"ftol": 1e-12}
        )
        np.testing.assert_allclose(found, best.x, atol=0.02)


def test_numbers_that_do_not_belong_together_are_told() -> None:
    data, asked = _model(3, {"rho": [0.0, 1.0]})
    with pytest.raises(
        loopscope.RunStopped, match="rho has 2 numbers, expected 3: one for each pair of classes"
    ):
        loopscope.run(loopscope.read_model(data), [asked])


def test_the_file_is_valid() -> None:
    onnx.checker.check_model(onnx.load_from_string(_model(3, {})[0]))
