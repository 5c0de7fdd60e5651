"""The Loop over tokens that exporters write for a recurrent layer: slices go in, a state is
carried, the output is written into place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset15

TOKENS = 2
"""The axis of the tokens: [batch, heads, tokens, size]."""
Declared = tuple[Any, list[int]]
"""A tensor of the outer graph, and the shape that the body declares for it or its slices."""
Cell = Callable[[list[Any], Any], tuple[Any, Any]]
"""From the parts of one token and the state before it: the state after it, and what the token
gives, [batch, heads, 1, size].
"""


def axis(number: int) -> Any:
    """An axis as a constant."""
    return opset15.constant(np.int32(number))


def token_count(value: Any, name: str = "tokens") -> Any:
    """How many tokens a tensor [batch, heads, tokens, ...] has."""
    return opset15.gather(opset15.shape_of(value), axis(TOKENS), axis(0), name=name)


def token_loop(
    name: str,
    count: Any,
    parts: Mapping[str, Declared],
    state: Declared,
    nothing: Declared,
    cell: Cell,
) -> tuple[Any, Any]:
    """The joined output and the last state.

    ``parts`` are the tensors that are sliced, by the names of their slices; ``state`` is what the
    first iteration begins with, ``nothing`` what the output is written into.
    """
    scope, _, last = name.rpartition("/")
    inside = f"{scope}/" if scope else ""
    token = opset15.parameter([], ov.Type.i32, name=f"{inside}token")
    sliced = [_parameter(inside + part, shape) for part, (_, shape) in parts.items()]
    before, written = _parameter(f"{inside}S", state[1]), _parameter(f"{inside}written", nothing[1])
    after, out = cell(list(sliced), before)
    place = opset15.unsqueeze(token, axis(0))
    # OpenVINO knows a gated delta net by the order of the body's results.
    results = [
        opset15.result(opset15.constant(True, name=f"{inside}always")),
        opset15.result(after),
        opset15.result(
            opset15.scatter_update(written, place, out, axis(TOKENS), name=f"{inside}output_so_far")
        ),
    ]
    loop: Any = opset15.loop(count, opset15.constant(True))
    loop.set_friendly_name(name)
    loop.set_function(ov.Model(results, [token, *sliced, before, written], f"{last}_body"))
    loop.set_special_body_ports([0, 0])
    for part, (whole, _) in zip(sliced, parts.values(), strict=True):
        loop.set_sliced_input(part, whole.output(0), 0, 1, 1, -1, TOKENS)
    loop.set_merged_input(before, state[0].output(0), results[1].output(0))
    loop.set_merged_input(written, nothing[0].output(0), results[2].output(0))
    joined = loop.get_iter_value(results[2].output(0), -1)
    return joined, loop.get_iter_value(results[1].output(0), -1)


def _parameter(name: str, shape: list[int]) -> Any:
    node = opset15.parameter(ov.PartialShape(shape), ov.Type.f32, name=name)
    node.output(0).get_tensor().set_names({name.rpartition("/")[2]})
    return node
