"""The derivative rules of OpenVINO's operations, asked on behalf of operations of ONNX that are
the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import REQUIRED
from loopscope.ops.derivative import Adjoints, Reverse, Value


def through(
    openvino: str, at: Reverse, inputs: tuple[Value, ...], attributes: Mapping[str, Any]
) -> Adjoints:
    """What the newest operation of that name gives for these inputs."""
    operation = CATALOGUE.versions(openvino)[-1]
    assert operation.gradient is not None
    usual = {
        one.keyword: one.default for one in operation.attributes if one.default is not REQUIRED
    }
    return operation.gradient(
        replace(
            at, inputs=inputs, attributes={**usual, **attributes}, places=tuple(range(len(inputs)))
        )
    )


def by(
    openvino: str, at: Reverse, inputs: tuple[Value, ...], attributes: Mapping[str, Any]
) -> Adjoints:
    """The same for the node's own inputs, which are the first ones."""
    return [*through(openvino, at, inputs, attributes), *[None] * len(at.inputs)][: len(at.inputs)]
