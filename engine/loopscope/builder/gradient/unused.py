"""Removal of unused backward nodes: gradient rules also compute adjoints that no result needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopscope.builder.frame import GraphFrame
from loopscope.builder.tensor import Tensor
from loopscope.ir.model import LayerId, OutputRef
from loopscope.ir.replace import replace


@dataclass(frozen=True, slots=True)
class PrunedFrame:
    """A frame after removal of unused nodes."""

    numbers: dict[LayerId, LayerId]
    frame: GraphFrame

    def holds(self, tensor: Tensor) -> bool:
        """Return True if the node of a tensor was not removed."""
        return tensor.source.layer in self.numbers

    def moved(self, tensor: Tensor) -> Tensor:
        """Return the handle of a remaining tensor with the new id of its node."""
        return self.frame.tensors[self.numbers[tensor.source.layer]][tensor.source.output]


def drop_unused(
    frame: GraphFrame,
    first: int,
    required: Sequence[Tensor],
    carried: Sequence[tuple[Tensor, Tensor]] = (),
) -> PrunedFrame:
    """Remove the nodes from id ``first`` on that none of the tensors needs, and renumber the rest.

    ``carried``: carried Parameters, each with the next value that it needs.
    """
    needed = _needed(frame, first, required, carried)
    numbers = {LayerId(layer): LayerId(layer) for layer in range(first)}
    for layer in map(LayerId, range(first, len(frame.nodes))):
        if layer in needed:
            numbers[layer] = LayerId(len(numbers))
    frame.nodes = [
        replace(frame.nodes[layer], id=numbers[layer]) if layer >= first else frame.nodes[layer]
        for layer in numbers
    ]
    frame.tensors = [
        tuple(_moved(frame, handle, numbers) for handle in frame.tensors[layer])
        for layer in numbers
    ]
    frame.edges = [
        edge._replace(from_layer=numbers[edge.from_layer], to_layer=numbers[edge.to_layer])
        for edge in frame.edges
        if edge.to_layer in numbers
    ]
    pruned = PrunedFrame(numbers, frame)
    frame.captures = {
        key: (outer, pruned.moved(inner))
        for key, (outer, inner) in frame.captures.items()
        if pruned.holds(inner)
    }
    return pruned


def _needed(
    frame: GraphFrame,
    first: int,
    required: Sequence[Tensor],
    carried: Sequence[tuple[Tensor, Tensor]],
) -> set[LayerId]:
    """Return the nodes from ``first`` on that the tensors need."""
    fed: dict[LayerId, list[LayerId]] = {}
    for edge in frame.edges:
        fed.setdefault(edge.to_layer, []).append(edge.from_layer)
    for parameter, after in carried:
        fed.setdefault(parameter.source.layer, []).append(after.source.layer)
    waiting = [tensor.source.layer for tensor in required]
    needed: set[LayerId] = set()
    while waiting:
        layer = waiting.pop()
        if layer >= first and layer not in needed:
            needed.add(layer)
            waiting += fed.get(layer, [])
    return needed


def _moved(frame: GraphFrame, tensor: Tensor, numbers: dict[LayerId, LayerId]) -> Tensor:
    number = numbers[tensor.source.layer]
    if number == tensor.source.layer:
        return tensor
    return Tensor(frame, OutputRef(number, tensor.source.output), tensor.name, tensor.known)
