"""Scan of opset 8, which also runs over a batch: written as a Scan over the batch with the Scan over the sequence in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import AttributeProto, GraphProto, NodeProto, helper

from engine.errors import ReadError

_FIRST_WITHOUT_BATCH = 9


def is_batched(node: NodeProto, version: int, attributes: Mapping[str, AttributeProto]) -> bool:
    """Whether the node is a Scan-8: those that were written here say their axes."""
    return node.op_type == "Scan" and version < _FIRST_WITHOUT_BATCH and "scan_input_axes" not in attributes and "body" in attributes


def with_loop_over_batch(node: NodeProto, attributes: Mapping[str, AttributeProto], refused: Callable[[str], ReadError]) -> NodeProto:
    """The same as Scan in Scan: everything is taken apart and stacked along the batch, axis 0.

    ``ReadError`` when the sequences of the batch have lengths of their own.
    """
    if node.input and node.input[0]:
        raise refused(f"Scan {node.name[:60]!r} of opset 8 has sequence_lens, which is not read: export the model with opset 9 or later")
    body = attributes["body"].g
    scans = int(attributes["num_scan_inputs"].i) if "num_scan_inputs" in attributes else 0
    directions = list(attributes["directions"].ints) if "directions" in attributes else []
    names = [one.name for one in body.input]
    inside = NodeProto(op_type="Scan", name="scan", input=names, output=[one.name for one in body.output])
    inside.attribute.append(attributes["body"])
    inside.attribute.extend(
        [
            helper.make_attribute("num_scan_inputs", scans),
            helper.make_attribute("scan_input_axes", [0] * scans, attr_type=AttributeProto.INTS),
            helper.make_attribute("scan_input_directions", directions, attr_type=AttributeProto.INTS),
        ]
    )
    # Types are left out: those of the body lack the axis of the sequence.
    over_batch = GraphProto(name="batch", node=[inside])
    for name in names:
        over_batch.input.add(name=name)
    for one in body.output:
        over_batch.output.add(name=one.name)
    inputs = list(node.input)[1:]
    outside = NodeProto(op_type="Scan", name=node.name, input=inputs, output=list(node.output))
    outside.attribute.extend(
        [
            helper.make_attribute("body", over_batch),
            helper.make_attribute("num_scan_inputs", len(inputs)),
            helper.make_attribute("scan_input_axes", [0] * len(inputs), attr_type=AttributeProto.INTS),
        ]
    )
    return outside
