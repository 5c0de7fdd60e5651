"""Operations of ONNX that are rewritten as other operations when a graph is read.

An operation that ONNX defines by a function is expanded, with the node's graphs inside it. Scan of
opset 8, which has a batch axis, becomes a Scan over the batch around a Scan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import onnx
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    TensorProto,
    TypeProto,
    helper,
    parser,
)

from loopscope.native.onnx_functions import function_of
from loopscope.read.onnx.tensors_and_types import ELEMENT_TYPES, ValueType

HELPER_DOMAIN = "loopscope"
"""Domain of the functions that a rewritten Scan calls."""
_FIRST_WITHOUT_BATCH = 9


def is_batched_scan(
    node: NodeProto, version: int, attributes: Mapping[str, AttributeProto]
) -> bool:
    """Return True if the node is a Scan of opset 8; the Scans that this module writes have axes."""
    return (
        node.op_type == "Scan"
        and version < _FIRST_WITHOUT_BATCH
        and "scan_input_axes" not in attributes
        and "body" in attributes
    )


@cache
def helper_functions() -> tuple[FunctionProto, ...]:
    """Return the functions of the rewritten Scan that opset 8 lacks operations for.

    ``first_parts`` cuts a sequence to its length; ``with_zeros`` pads a result to the full length.
    """
    opsets = f'<domain: "{HELPER_DOMAIN}", opset_import: ["" : 18]>'
    first_parts = """first_parts (sequence, length) => (parts) {
        zero = Constant <value_ints = [0]> ()
        one = Constant <value_ints = [1]> ()
        end = Reshape (length, one)
        parts = Slice (sequence, zero, end, zero)
    }"""
    with_zeros = """with_zeros (parts, sequence) => (all) {
        zero = Constant <value_ints = [0]> ()
        whole = Shape <start = 0, end = 1> (sequence)
        there = Shape <start = 0, end = 1> (parts)
        missing = Sub (whole, there)
        pads = Concat <axis = 0> (zero, missing)
        all = Pad (parts, pads, , zero)
    }"""
    return tuple(parser.parse_function(f"{opsets}\n{text}") for text in (first_parts, with_zeros))


def expand_batched_scan(node: NodeProto, attributes: Mapping[str, AttributeProto]) -> NodeProto:
    """Return the node as a Scan over the batch (axis 0 of all inputs and outputs) around a Scan.

    If the sequences of the batch have individual lengths, each is scanned to its length, and scan
    outputs are padded with zeros. ``ValueError`` if the body has too few inputs or outputs.
    """
    body = attributes["body"].g
    scans = int(attributes["num_scan_inputs"].i) if "num_scan_inputs" in attributes else 0
    names, results = [value.name for value in body.input], [value.name for value in body.output]
    states = max(len(names) - scans, 0)
    if not 1 <= scans <= len(names) or len(results) < states:
        raise ValueError(
            f"num_scan_inputs is {scans}, which does not fit a body of {len(names)} inputs"
            f" and {len(results)} outputs"
        )
    # A value that the body passes through has the same name as an input, so outputs get new names.
    results = [_unused(f"{name} given back", names) if name in names else name for name in results]
    outer_inputs = names
    nodes = [_inside(attributes, scans, names, results)]
    outer_outputs = results
    inputs = list(node.input)[1:]
    if node.input and node.input[0]:
        inputs.append(node.input[0])
        outer_inputs = [*names, _unused("length", names)]
        parts = [_unused(f"{name} that counts", names) for name in names[states:]]
        filled = [_unused(f"all {name}", results) for name in results[states:]]
        outer_outputs = [*results[:states], *filled]
        nodes = [
            *(
                _call("first_parts", [name, outer_inputs[-1]], part)
                for name, part in zip(names[states:], parts, strict=True)
            ),
            _inside(attributes, scans, [*names[:states], *parts], results),
            *(
                _call("with_zeros", [name, names[states]], full)
                for name, full in zip(results[states:], filled, strict=True)
            ),
        ]
    # Types are omitted: the types in the body lack the sequence axis.
    over_batch = GraphProto(name="batch", node=nodes)
    for name in outer_inputs:
        over_batch.input.add(name=name)
    for name in outer_outputs:
        over_batch.output.add(name=name)
    batch_scan = NodeProto(op_type="Scan", name=node.name, input=inputs, output=list(node.output))
    batch_scan.attribute.extend(
        [
            helper.make_attribute("body", over_batch),
            helper.make_attribute("num_scan_inputs", len(inputs)),
            helper.make_attribute(
                "scan_input_axes", [0] * len(inputs), attr_type=AttributeProto.INTS
            ),
        ]
    )
    return batch_scan


def _inside(
    attributes: Mapping[str, AttributeProto], scans: int, inputs: list[str], outputs: list[str]
) -> NodeProto:
    """Return the Scan over one sequence."""
    directions = list(attributes["directions"].ints) if "directions" in attributes else []
    scan = NodeProto(op_type="Scan", name="scan", input=inputs, output=outputs)
    scan.attribute.append(attributes["body"])
    scan.attribute.extend(
        [
            helper.make_attribute("num_scan_inputs", scans),
            helper.make_attribute("scan_input_axes", [0] * scans, attr_type=AttributeProto.INTS),
            helper.make_attribute(
                "scan_input_directions", directions, attr_type=AttributeProto.INTS
            ),
        ]
    )
    return scan


def _call(function: str, inputs: list[str], output: str) -> NodeProto:
    return NodeProto(
        op_type=function, domain=HELPER_DOMAIN, name=output, input=inputs, output=[output]
    )


def _unused(name: str, names: list[str]) -> str:
    while name in names:
        name += "'"
    return name


_LARGEST_VERSION = 2**31 - 1
"""Largest opset version that the onnx package accepts."""
_NUMBERS = {element_type: number for number, element_type in ELEMENT_TYPES.items()}


def expand_function(
    node: NodeProto,
    attributes: Mapping[str, AttributeProto],
    version: int,
    types: Sequence[ValueType],
) -> FunctionProto | None:
    """Return the function that defines the node, or None if ONNX does not define one for it."""
    if not 0 < version <= _LARGEST_VERSION or not _has_function(node.op_type, version, node.domain):
        return None
    resolved = NodeProto(
        op_type=node.op_type, domain=node.domain, input=list(node.input), output=list(node.output)
    )
    resolved.attribute.extend(attributes.values())
    return function_of(
        resolved,
        version,
        [
            TypeProto(tensor_type=TypeProto.Tensor(elem_type=_number(value_type)))
            for value_type in types
        ],
    )


def _has_function(type: str, version: int, domain: str) -> bool:
    """Return True if ONNX defines the operation by a function that depends on the node."""
    try:
        schema: Any = onnx.defs.get_schema(type, version, domain)
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_context_dependent_function)


def _number(type: ValueType) -> int:
    """Return ONNX's number of the element type; f32 if it is unknown."""
    return (
        _NUMBERS.get(type.element_type, TensorProto.FLOAT)
        if type.element_type is not None
        else TensorProto.FLOAT
    )
