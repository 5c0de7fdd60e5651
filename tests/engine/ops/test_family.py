"""Rows of a family: what is shared, what a row says itself, and what follows from its name."""

from __future__ import annotations

from dataclasses import fields

from loopscope.ir.element_type import FLOATS
from loopscope.ops.declare import Attribute, Operation, Role
from loopscope.ops.family import Fields, family
from loopscope.ops.infer import same

_ALPHA = (Attribute("alpha", "float"),)


def _kernel(data: object, /) -> object:
    return data


def test_a_row_has_what_its_family_shares() -> None:
    row = family("activation", infer=same, types=(FLOATS,))
    assert _fields(row("SoftPlus", _kernel, version=4)) == _fields(
        Operation(
            name="SoftPlus",
            version=4,
            opsets=(4, 16),
            page="activation/soft-plus-4",
            kernel=_kernel,
            infer=same,
            types=(FLOATS,),
        )
    )


def test_what_a_row_says_itself_counts() -> None:
    row = family("activation", infer=same, attributes=_ALPHA, inputs=(2, 2))
    made = row(
        "Elu", opsets=(1, 1), page="activation/elu", attributes=(), inputs=(1, 1), role=Role.RESULT
    )
    assert _fields(made) == _fields(
        Operation(
            name="Elu",
            version=1,
            opsets=(1, 1),
            page="activation/elu",
            infer=same,
            role=Role.RESULT,
        )
    )
    assert row("Selu").attributes == _ALPHA, "one row's own words changed another row"


def test_a_family_can_share_every_field_but_those_that_make_a_row_what_it_is() -> None:
    own = {
        "name",
        "version",
        "opsets",
        "page",
        "kernel",
        "doc",
        "input_docs",
        "output_docs",
        "spec_inputs",
        "pure",
        "shows",
        "output_types",
        "broadcasts",
    }
    assert set(Fields.__annotations__) == {field.name for field in fields(Operation)} - own


def _fields(operation: Operation) -> dict[str, object]:
    """Operations are compared by identity; this compares what they say."""
    return {field.name: getattr(operation, field.name) for field in fields(operation)}
