"""Category infrastructure of the OpenVINO operation specs: operations that the machine executes,
without kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loopscope.ir.element_type import INDEX_TYPES, ElementType
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.ops.declare import Attribute, Known, Operation, Role
from loopscope.ops.family import family
from loopscope.ops.infer import same


def _declared(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    return (Known(attributes["element_type"], attributes["shape"]),)


def _constant(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    return (Known(attributes["element_type"], PartialShape.of(attributes["shape"])),)


def _variable(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the variable's own type and shape, which may be wider than those of the initial value.

    Raise ``ValueError`` if the initial value contradicts them.
    """
    name = attributes["variable_type"]
    own = None if name in ("dynamic", "undefined") else ElementType(name)
    shape: PartialShape = attributes["variable_shape"]
    if inputs:
        initial = inputs[0]
        if own is not None and initial.element_type not in (None, own):
            raise ValueError(
                f"the initial value is {initial.element_type}, the variable is declared {own}"
            )
        if shape.intersect(initial.shape) is None:
            raise ValueError(
                f"the initial value has shape {initial.shape}, the variable is declared {shape}"
            )
    return (Known(own, shape),)


_VARIABLE_TYPES = (*(element_type.value for element_type in ElementType), "dynamic", "undefined")
_BOOLEAN = frozenset({ElementType.BOOLEAN})
_ANY = frozenset(ElementType)

row = family("infrastructure")

OPERATIONS: tuple[Operation, ...] = (
    row(
        "Assign",
        version=3,
        opsets=(3, 5),
        infer=same,
        attributes=(Attribute("variable_id", "str"),),
        role=Role.ASSIGN,
    ),
    row(
        "Assign",
        version=6,
        infer=same,
        attributes=(Attribute("variable_id", "str"),),
        role=Role.ASSIGN,
    ),
    row(
        "Const",
        opsets=(1, 17),
        page="infrastructure/constant-1",
        infer=_constant,
        inputs=(0, 0),
        attributes=(
            Attribute("element_type", "type"),
            Attribute("shape", "ints", least=0),
            Attribute("offset", "int", 0, least=0),
            Attribute("size", "int", 0, least=0),
        ),
        role=Role.CONSTANT,
    ),
    row(
        "Loop",
        version=5,
        inputs=(2, None),
        outputs=None,
        types=(INDEX_TYPES, _BOOLEAN, _ANY),
        role=Role.REGION,
    ),
    row(
        "Parameter",
        opsets=(1, 17),
        infer=_declared,
        inputs=(0, 0),
        attributes=(Attribute("element_type", "type"), Attribute("shape", "shape", DYNAMIC)),
        role=Role.PARAMETER,
    ),
    row(
        "ReadValue",
        version=3,
        opsets=(3, 5),
        infer=same,
        attributes=(Attribute("variable_id", "str"),),
        role=Role.READ_VALUE,
    ),
    row(
        "ReadValue",
        version=6,
        infer=_variable,
        inputs=(0, 1),
        attributes=(
            Attribute("variable_id", "str"),
            Attribute("variable_type", "str", allowed=_VARIABLE_TYPES),
            Attribute("variable_shape", "shape"),
        ),
        role=Role.READ_VALUE,
    ),
    row("Result", infer=same, role=Role.RESULT),
    row("TensorIterator", inputs=(1, None), outputs=None, role=Role.REGION),
)
