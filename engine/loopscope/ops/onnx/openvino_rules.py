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


def openvino_adjoints(
    openvino: str,
    node: Reverse,
    inputs: tuple[Value, ...],
    attributes: Mapping[str, Any],
    version: int | None = None,
) -> Adjoints:
    """Return the adjoints of these inputs by the rule of an OpenVINO operation of that name.

    ``version``: version of the operation; None for the newest.
    """
    operation = next(
        operation
        for operation in reversed(CATALOGUE.versions(openvino))
        if version in (None, operation.version)
    )
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


def by_openvino_rule(
    openvino: str,
    node: Reverse,
    inputs: tuple[Value, ...],
    attributes: Mapping[str, Any],
    version: int | None = None,
) -> Adjoints:
    """Return the adjoints of the node's inputs. The first of them are ``inputs``; the adjoints of
    inputs beyond those are None.
    """
    adjoints = openvino_adjoints(openvino, node, inputs, attributes, version)
    return [*adjoints, *[None] * len(node.inputs)][: len(node.inputs)]


INDICES_INSIDE = 7
"""Version of Gather whose indices must be inside the data, as those of ONNX."""
