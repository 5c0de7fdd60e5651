"""Gradients through TensorIterators: slices both ways, parts of several elements, stretches of
an axis; against central differences.
"""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from loopscope.explain import walks_of
from tests.engine.drafts import F32, Draft, Ref, Slice, tensor_iterator

PARTS: dict[str, Slice] = {
    "from_the_begin": {"axis": 0},
    "from_the_end": {"axis": 0, "start": -1, "end": 0, "stride": -1},
    "two_at_a_time": {"axis": 0, "part_size": 2, "stride": 2},
    "two_at_a_time_from_the_end": {"axis": 0, "start": -1, "end": 0, "part_size": 2, "stride": -2},
    "a_stretch": {"axis": 0, "start": 1, "end": -2},
    "along_another_axis": {"axis": 1},
}
XS = np.random.default_rng(4).uniform(0.2, 0.9, (6, 3)).astype(np.float32)


def _model(cut: Slice) -> loopscope.Model:
    """``h' = tanh(h * part + part)``, its last value and all of them joined, summed and squared."""
    size = cut.get("part_size", 1)
    shape = [6, 1] if cut["axis"] else [size, 3]
    outer, body = Draft(), Draft()
    xs, h0 = outer.parameter("xs", F32, [6, 3]), outer.parameter("h", F32, shape)
    h, part = body.parameter("h", F32, shape), body.parameter("part", F32, shape)
    new = body.op("Tanh", body.op("Add", body.op("Multiply", h, part), part))
    after, parts = body.result(new), body.result(new)
    made = tensor_iterator(
        outer,
        body,
        carried=[(h0, h, after)],
        sliced=[(xs, part, cut)],
        last=[after],
        joined=[(parts, cut)],
    )
    for number in range(2):
        outer.result(outer.op("Multiply", *[Ref(made.layer, number)] * 2), f"out{number}")
    return outer.model()


@pytest.mark.parametrize("name", PARTS)
def test_an_iterator_over_parts(name: str) -> None:
    model = _model(PARTS[name])
    h = np.random.default_rng(6).uniform(0.2, 0.9, model.inputs[1].shape.lengths).astype(np.float32)
    outputs = [one.name for one in model.outputs]
    found = loopscope.check_gradient(model, [XS, h], outputs, ["xs", "h"])
    assert found.ok, found
    run = loopscope.Debugger(loopscope.gradients(model, outputs, ["xs", "h"]), [XS, h])
    run.run()
    (walk,) = walks_of(run)
    assert (walk.walked, [one.name for one in walk.adjoints]) == (walk.count, ["h"])
