"""The node tests of the onnx package: all with control flow, and a broad sample of the others."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, TensorProto, numpy_helper
from onnx.backend.test.case.test_case import TestCase

import loopscope
from loopscope.ops.onnx_catalogue import REGIONS

pytestmark = pytest.mark.slow

NAMES = tuple(Path(__file__).with_name("onnx_node_tests.txt").read_text(encoding="utf-8").split())
"""All with control flow, one in seven of the others, and what was once wrong; a file, because
making the cases takes seconds that collecting need not.
"""


@pytest.fixture(scope="module")
def cases() -> dict[str, TestCase]:
    """The node tests by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return {case.name: case for case in collect_testcases()}


def _has_control_flow(graph: GraphProto) -> bool:
    waiting = [graph]
    while waiting:
        for node in waiting.pop().node:
            if node.op_type in REGIONS or any(
                attribute.HasField("g") for attribute in node.attribute
            ):
                return True
            waiting += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    return False


def _tensor(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def _ran(case: TestCase) -> Iterable[tuple[Sequence[Any], Sequence[Any]]]:
    """Outputs of ours and of the test."""
    assert case.model is not None
    assert case.data_sets is not None
    model = loopscope.read_model(case.model.SerializeToString())
    names = [one.name for one in case.model.graph.input]
    for inputs, outputs in case.data_sets:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = loopscope.run(model, dict(zip(names, map(_tensor, inputs), strict=True)))
        yield result.outputs, [_tensor(one) for one in outputs]


def _check(case: TestCase) -> None:
    for mine, theirs in _ran(case):
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            _same(one, other, case)


def _same(one: Any, other: Any, case: TestCase) -> None:
    if other is None:
        assert one is None
    elif isinstance(other, (list, tuple)):
        assert isinstance(one, tuple)
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            _same(mine, theirs, case)
    else:
        expected = np.asarray(other)
        assert one.shape == expected.shape
        if expected.dtype.kind in "USO":
            texts = [
                item.decode() if isinstance(item, bytes) else str(item)
                for item in expected.reshape(-1).tolist()
            ]
            assert one.reshape(-1).tolist() == texts
            return
        assert one.dtype == expected.dtype
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(
            one.astype(wide), expected.astype(wide), rtol=case.rtol, atol=max(case.atol, 1e-7)
        )


@pytest.mark.parametrize("name", NAMES)
def test_a_node_test_of_onnx(name: str, cases: dict[str, TestCase]) -> None:
    _check(cases[name])


def test_every_node_test_with_control_flow_is_in_the_list(cases: dict[str, TestCase]) -> None:
    assert not {
        name for name, case in cases.items() if case.model and _has_control_flow(case.model.graph)
    } - set(NAMES)
