"""Scan of opset 8, which also runs over a batch: written as a Scan over the batch with the Scan
over the sequence in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, helper, parser

_DOMAIN = "loopscope"
_FIRST_WITHOUT_BATCH = 9


def is_batched(node: NodeProto, version: int, attributes: Mapping[str, AttributeProto]) -> bool:
    """Whether the node is a Scan-8: those that were written here say their axes."""
    return (
        node.op_type == "Scan"
        and version < _FIRST_WITHOUT_BATCH
        and "scan_input_axes" not in attributes
        and "body" in attributes
    )


@cache
def functions() -> tuple[FunctionProto, ...]:
    """Of what opset 8 has no operations for: the parts of a sequence that count, and the zeros
    in place of the others.
    """
    opsets = f'<domain: "{_DOMAIN}", opset_import: ["" : 18]>'
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


def with_loop_over_batch(node: NodeProto, attributes: Mapping[str, AttributeProto]) -> NodeProto:
    """The same as Scan in Scan: everything is taken apart and stacked along the batch, axis 0.

    Where the sequences of the batch have lengths of their own, only so many parts are scanned, and
    zeros fill what is stacked. ``ValueError`` when the body has too few inputs or outputs.
    """
    body = attributes["body"].g
    scans = int(attributes["num_scan_inputs"].i) if "num_scan_inputs" in attributes else 0
    names, results = [one.name for one in body.input], [one.name for one in body.output]
    states = max(len(names) - scans, 0)
    if not 1 <= scans <= len(names) or len(results) < states:
        raise ValueError(
            f"num_scan_inputs is {scans}, which does not fit a body of {len(names)} inputs and {len(results)} outputs"
        )
    # What the body hands through has the name of what enters here.
    results = [_unused(f"{name} given back", names) if name in names else name for name in results]
    given, nodes, made = names, [_inside(attributes, scans, names, results)], results
    inputs = list(node.input)[1:]
    if node.input and node.input[0]:
        inputs.append(node.input[0])
        given = [*names, _unused("length", names)]
        parts = [_unused(f"{name} that counts", names) for name in names[states:]]
        filled = [_unused(f"all {name}", results) for name in results[states:]]
        made = [*results[:states], *filled]
        nodes = [
            *(
                _call("first_parts", [name, given[-1]], part)
                for name, part in zip(names[states:], parts, strict=True)
            ),
            _inside(attributes, scans, [*names[:states], *parts], results),
            *(
                _call("with_zeros", [name, names[states]], full)
                for name, full in zip(results[states:], filled, strict=True)
            ),
        ]
    # Types are left out: those of the body lack the axis of the sequence.
    over_batch = GraphProto(name="batch", node=nodes)
    for name in given:
        over_batch.input.add(name=name)
    for name in made:
        over_batch.output.add(name=name)
    outside = NodeProto(op_type="Scan", name=node.name, input=inputs, output=list(node.output))
    outside.attribute.extend(
        [
            helper.make_attribute("body", over_batch),
            helper.make_attribute("num_scan_inputs", len(inputs)),
            helper.make_attribute(
                "scan_input_axes", [0] * len(inputs), attr_type=AttributeProto.INTS
            ),
        ]
    )
    return outside


def _inside(
    attributes: Mapping[str, AttributeProto], scans: int, inputs: list[str], outputs: list[str]
) -> NodeProto:
    """The Scan over one sequence."""
    directions = list(attributes["directions"].ints) if "directions" in attributes else []
    inside = NodeProto(op_type="Scan", name="scan", input=inputs, output=outputs)
    inside.attribute.append(attributes["body"])
    inside.attribute.extend(
        [
            helper.make_attribute("num_scan_inputs", scans),
            helper.make_attribute("scan_input_axes", [0] * scans, attr_type=AttributeProto.INTS),
            helper.make_attribute(
                "scan_input_directions", directions, attr_type=AttributeProto.INTS
            ),
        ]
    )
    return inside


def _call(function: str, inputs: list[str], output: str) -> NodeProto:
    return NodeProto(op_type=function, domain=_DOMAIN, name=output, input=inputs, output=[output])


def _unused(name: str, names: list[str]) -> str:
    while name in names:
        name += "'"
    return name
