"""Derivative rules of OpenVINO operations, applied to ONNX operations that are the same
functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import REQUIRED
from loopscope.ops.derivative import Adjoints, Reverse, Value


def through(
    openvino: str, node: Reverse, inputs: tuple[Value, ...], attributes: Mapping[str, Any]
) -> Adjoints:
    """Return the adjoints of these inputs by the rule of the newest OpenVINO operation of that
    name.
    """
    operation = CATALOGUE.versions(openvino)[-1]
    assert operation.gradient is not None
    usual = {
        attribute.keyword: attribute.default
        for attribute in operation.attributes
        if attribute.default is not REQUIRED
    }
    return operation.gradient(
        replace(
            node,
            inputs=inputs,
            attributes={**usual, **attributes},
            places=tuple(range(len(inputs))),
        )
    )


def by(
    openvino: str, node: Reverse, inputs: tuple[Value, ...], attributes: Mapping[str, Any]
) -> Adjoints:
    """Return the adjoints of the node's inputs. The first of them are ``inputs``; the adjoints of
    inputs beyond those are None.
    """
    return [*through(openvino, node, inputs, attributes), *[None] * len(node.inputs)][
        : len(node.inputs)
    ]
