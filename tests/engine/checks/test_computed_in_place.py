"""States that are computed in the memory of a slice: the rule warns exactly where OpenVINO is
wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import openvino
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.checks.check import check
from loopscope.ops.catalogue import CATALOGUE

Tensor = builder.Tensor
W = np.random.default_rng(3).standard_normal((4, 4)).astype(np.float32)
BODIES: Mapping[str, tuple[Callable[[Tensor, Tensor], Tensor], bool]] = {
    "part + state": (lambda state, part: part + state, True),
    "part * state": (lambda state, part: part * state, True),
    "part - product": (lambda state, part: part - state @ part.graph.constant(W), True),
    "tanh(part + product)": (
        lambda state, part: ops.tanh(part + state @ part.graph.constant(W)),
        True,
    ),
    "softmax(part + product)": (
        lambda state, part: ops.softmax(part + state @ part.graph.constant(W), axis=1),
        True,
    ),
    "part + what is computed of the state": (
        lambda state, part: part + state * np.float32(0.9),
        False,
    ),
    "state + part": (lambda state, part: state + part, False),
    "product + part": (lambda state, part: state @ part.graph.constant(W) + part, False),
    "a part that is read again": (lambda state, part: (part + state) * part, False),
    "what is computed of a part": (
        lambda state, part: ops.tanh(part) + state @ part.graph.constant(W),
        False,
    ),
    "a sum that is multiplied": (
        lambda state, part: (part + state) @ part.graph.constant(W),
        False,
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_rule_warns_where_openvino_is_wrong(name: str, tmp_path: Path) -> None:
    body, wrong = BODIES[name]
    graph = builder.Graph("folded")
    parts, start = (
        graph.parameter("parts", "f32", [3, 2, 4]),
        graph.parameter("start", "f32", [2, 4]),
    )
    model = graph.model(builder.foldl(body, parts, start))
    assert [one.code for one in check(model, CATALOGUE).diagnostics if one.code == "LS920"] == [
        "LS920"
    ] * wrong
    loopscope.write_model(model, tmp_path / "model.xml")
    drawn = np.random.default_rng(5)
    feeds = [drawn.standard_normal(shape).astype(np.float32) for shape in ((3, 2, 4), (2, 4))]
    (theirs,) = (
        openvino.Core()
        .compile_model(tmp_path / "model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(feeds)
        .values()
    )
    (ours,) = loopscope.run(model, feeds).outputs
    assert np.allclose(theirs, ours, atol=1e-4) != wrong
