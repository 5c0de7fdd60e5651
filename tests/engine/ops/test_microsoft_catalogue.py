"""The rows of the domain com.microsoft say what ONNX Runtime's own schemas say."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

from loopscope.ops.declare import REQUIRED, Operation, Role
from loopscope.ops.microsoft import DOMAIN, MICROSOFT

SCHEMAS: dict[str, Any] = {
    one.name: one for one in runtime.get_all_operator_schema() if one.domain == DOMAIN
}
NEW_OPERATIONS = frozenset({"GatedDeltaNetStateReplay", "SwiGLU"})
"""Operations of ONNX Runtime 1.32, or changed in it; the installed version may be older."""
NEW_ATTRIBUTES = {
    "CausalConvWithState": {
        "input_channel_offset",
        "input_channels",
        "state_channels_last",
        "state_length",
        "state_update_capacity",
    },
    "GatedDeltaNet": {"gate_lower_bound"},
    "MoE": {"swiglu_limit_after_activation"},
    "SwiGLU": {"activation_beta", "limit", "round_activation"},
}
"""Attributes of ONNX Runtime 1.32, by operation."""
INSTALLED = {name: row for name, row in MICROSOFT.items() if name not in NEW_OPERATIONS}
ROWS = pytest.mark.parametrize("row", INSTALLED.values(), ids=INSTALLED.keys())
GRAPHS = "AttrType.GRAPH"
MANY = 2**31 - 1


@ROWS
def test_as_many_inputs_and_outputs(row: Operation) -> None:
    schema = SCHEMAS[row.name]
    assert row.inputs == (schema.min_input, None if schema.max_input == MANY else schema.max_input)
    optional = {
        number
        for number, one in enumerate(schema.inputs)
        if one.option.name == "Optional" and number < schema.min_input
    }
    assert row.optional_inputs == optional
    assert row.outputs == (None if schema.max_output == MANY else schema.max_output)


@ROWS
def test_the_same_attributes(row: Operation) -> None:
    schema = SCHEMAS[row.name]
    theirs_by_name = {
        name: one for name, one in schema.attributes.items() if str(one.type) != GRAPHS
    }
    new = NEW_ATTRIBUTES.get(row.name, set()) - set(theirs_by_name)
    assert {one.name for one in row.attributes} - new == set(theirs_by_name)
    for one in row.attributes:
        if one.name in new:
            continue
        theirs = schema.attributes[one.name]
        assert (one.default is REQUIRED) == theirs.required, one.name
        if theirs._default_value:
            default = helper.get_attribute_value(AttributeProto.FromString(theirs._default_value))
            # Schemas hold f32.
            mine = float(np.float32(one.default)) if isinstance(one.default, float) else one.default
            assert mine == (default.decode() if isinstance(default, bytes) else default), one.name


@ROWS
def test_a_kernel_takes_what_the_row_declares(row: Operation) -> None:
    if row.role is not Role.COMPUTE:
        return
    assert row.kernel is not None
    parameters = inspect.signature(row.kernel).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return
    keywords = {one.name for one in parameters if one.kind is one.KEYWORD_ONLY}
    assert {one.keyword for one in row.attributes} | (
        {"outputs"} if row.counts_outputs else set()
    ) <= keywords
    assert row.summary
