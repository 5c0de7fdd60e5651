"""What is known of outputs before a run holds for what a run gives: of every node that the tests
of com.microsoft have.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import NOTHING_KNOWN, Known, typed
from loopscope.ops.microsoft import IN_ONNX, MICROSOFT
from tests.engine.ops import (
    test_microsoft_activation,
    test_microsoft_attention,
    test_microsoft_grouped,
    test_microsoft_movement,
    test_microsoft_normalization,
    test_microsoft_products,
)
from tests.engine.ops.microsoft_nodes import Case


def _cases() -> Iterator[tuple[str, Case]]:
    for tables in (
        [
            test_microsoft_activation.CASES,
            test_microsoft_grouped.CASES,
            test_microsoft_movement.CASES,
        ],
        [test_microsoft_normalization.CASES, test_microsoft_products.CASES],
        [
            test_microsoft_attention.ATTENTION,
            test_microsoft_attention.HEADS,
            test_microsoft_attention.TURNED,
        ],
    ):
        for table in tables:
            yield from ((f"{case.type}, {name}", case) for name, case in table.items())


CASES = dict(_cases())


def _known(array: np.ndarray | None, how: str) -> Known:
    if array is None:
        return NOTHING_KNOWN
    whole = Known.of(array)
    match how:
        case "values":
            return whole
        case "shapes":
            return Known(whole.element_type, whole.shape)
        case "ranks":
            return Known(whole.element_type, PartialShape.unknown(array.ndim))
        case _:
            return Known(whole.element_type)


@pytest.mark.parametrize("how", ["values", "shapes", "ranks", "types"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_rule_holds(case: Case, how: str) -> None:
    operation = MICROSOFT[case.type] if case.domain else IN_ONNX[case.type]
    assert operation.infer is not None
    inferred = operation.infer(
        [_known(one, how) for one in case.inputs], typed(operation, dict(case.attributes))
    )
    made = iter(case.here())
    for known, there in zip(inferred, case.outputs, strict=False):
        if there:
            array = next(made)
            assert known.element_type in (None, Known.of(array).element_type)
            assert known.shape.contains(array.shape), f"{known.shape} for {array.shape}"
