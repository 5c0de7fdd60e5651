"""The rows that the machine itself carries out: their roles, and what is known of them."""

from __future__ import annotations

import numpy as np
import pytest

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import AttributeProblem, Known, Operation, Role, typed


def operation(name: str, opset: str) -> Operation:
    found = CATALOGUE.find(name, opset)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "opset", "version", "role"),
    [
        ("Parameter", "opset1", 1, Role.PARAMETER),
        ("parameter", "opset17", 1, Role.PARAMETER),
        ("Result", "opset16", 1, Role.RESULT),
        ("Const", "opset17", 1, Role.CONSTANT),
        ("Loop", "opset5", 5, Role.REGION),
        ("TensorIterator", "opset1", 1, Role.REGION),
        ("If", "opset16", 8, Role.REGION),
        ("ReadValue", "opset5", 3, Role.READ_VALUE),
        ("ReadValue", "opset6", 6, Role.READ_VALUE),
        ("Assign", "opset3", 3, Role.ASSIGN),
        ("Assign", "opset11", 6, Role.ASSIGN),
    ],
)
def test_roles(name: str, opset: str, version: int, role: Role) -> None:
    found = operation(name, opset)
    assert (found.version, found.role, found.kernel) == (version, role, None)


@pytest.mark.parametrize(
    ("name", "opset"),
    [
        ("Loop", "opset4"),
        ("If", "opset7"),
        ("Result", "opset17"),
        ("Loop", "opset18"),
        ("ReadValue", "opset2"),
    ],
)
def test_opsets_that_lack_an_operation(name: str, opset: str) -> None:
    assert CATALOGUE.find(name, opset) is None


def inferred(name: str, opset: str, attributes: dict[str, object], *inputs: Known) -> str:
    row = operation(name, opset)
    assert row.infer is not None
    (known,) = row.infer(inputs, typed(row, attributes))
    return f"{known.element_type} {known.shape}"


VALUE = Known.of(np.zeros((2, 3), np.float32))
STATE = {"variable_id": "v", "variable_type": "f32", "variable_shape": "2,?"}


@pytest.mark.parametrize(
    ("name", "opset", "attributes", "inputs", "expected"),
    [
        ("Parameter", "opset1", {"element_type": "f32", "shape": "2,?,1..8"}, (), "f32 [2,?,1..8]"),
        ("Parameter", "opset1", {"element_type": "boolean"}, (), "boolean ..."),
        (
            "Const",
            "opset1",
            {"element_type": "i64", "shape": "2, 3", "offset": "0", "size": "48"},
            (),
            "i64 [2,3]",
        ),
        (
            "Const",
            "opset1",
            {"element_type": "u4", "shape": "", "offset": "7", "size": "1"},
            (),
            "u4 []",
        ),
        ("Result", "opset1", {}, (VALUE,), "f32 [2,3]"),
        ("Assign", "opset6", {"variable_id": "v"}, (VALUE,), "f32 [2,3]"),
        ("ReadValue", "opset3", {"variable_id": "v"}, (VALUE,), "f32 [2,3]"),
        ("ReadValue", "opset6", STATE, (VALUE,), "f32 [2,?]"),
        ("ReadValue", "opset6", STATE, (), "f32 [2,?]"),
        (
            "ReadValue",
            "opset6",
            STATE | {"variable_type": "dynamic", "variable_shape": "..."},
            (VALUE,),
            "None ...",
        ),
    ],
)
def test_inferred(
    name: str, opset: str, attributes: dict[str, object], inputs: tuple[Known, ...], expected: str
) -> None:
    assert inferred(name, opset, attributes, *inputs) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variable_type": "i32"}, "initial value is f32, the variable is declared i32"),
        ({"variable_shape": "3,3"}, r"shape \[2,3\], the variable is declared"),
    ],
)
def test_a_variable_must_hold_its_initial_value(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        inferred("ReadValue", "opset6", STATE | change, VALUE)


@pytest.mark.parametrize(
    ("name", "attributes", "message"),
    [
        ("Parameter", {"shape": "1"}, "'element_type' .* is missing"),
        (
            "Parameter",
            {"element_type": "FP32", "shape": "1"},
            "'element_type' is 'FP32', expected an element type",
        ),
        (
            "Parameter",
            {"element_type": "f32", "shape": "1,x"},
            "'shape' is '1,x', expected a shape",
        ),
        (
            "Const",
            {"element_type": "f32", "shape": "-1"},
            "'shape' is '-1', expected integers of at least 0",
        ),
        (
            "ReadValue",
            {"variable_id": "v", "variable_type": "f31", "variable_shape": ""},
            "'variable_type' is 'f31'",
        ),
    ],
)
def test_wrong_attributes_are_named(name: str, attributes: dict[str, object], message: str) -> None:
    with pytest.raises(AttributeProblem, match=message):
        typed(operation(name, "opset6"), attributes)


def test_the_shape_of_a_parameter_is_kept_as_declared() -> None:
    row = operation("Parameter", "opset1")
    assert typed(row, {"element_type": "f32", "shape": "..."}) == {
        "element_type": ElementType.F32,
        "shape": PartialShape(None),
    }
