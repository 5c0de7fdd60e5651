"""Rules compute adjoints that nobody asked for; what no result needs goes away again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.build.frame import Frame
from engine.build.tensor import Tensor
from engine.ir.model import LayerId, Source


def without_unused(frame: Frame, first: int, kept: Sequence[Tensor]) -> list[Tensor]:
    """Drops the nodes from number ``first`` on that none of the tensors needs, and numbers the others anew; gives the tensors."""
    needed = _needed(frame, first, kept)
    number = {LayerId(layer): LayerId(layer) for layer in range(first)}
    for layer in map(LayerId, range(first, len(frame.nodes))):
        if layer in needed:
            number[layer] = LayerId(len(number))
    moved = {one: _moved(frame, one, number) for layer in needed for one in frame.tensors[layer]}
    frame.nodes = [replace(frame.nodes[layer], id=number[layer]) if layer >= first else frame.nodes[layer] for layer in number]
    frame.tensors = [tuple(moved.get(one, one) for one in frame.tensors[layer]) for layer in number]
    frame.edges = [
        edge._replace(from_layer=number[edge.from_layer], to_layer=number[edge.to_layer]) for edge in frame.edges if edge.to_layer in number
    ]
    frame.captures = {
        key: (outer, moved.get(inner, inner)) for key, (outer, inner) in frame.captures.items() if inner.source.layer in number
    }
    return [moved.get(tensor, tensor) for tensor in kept]


def _needed(frame: Frame, first: int, kept: Sequence[Tensor]) -> set[LayerId]:
    """The nodes from ``first`` on that the tensors and the nodes before need."""
    fed: dict[LayerId, list[LayerId]] = {}
    for edge in frame.edges:
        fed.setdefault(edge.to_layer, []).append(edge.from_layer)
    waiting = [tensor.source.layer for tensor in kept]
    needed: set[LayerId] = set()
    while waiting:
        layer = waiting.pop()
        if layer >= first and layer not in needed:
            needed.add(layer)
            waiting += fed.get(layer, [])
    return needed


def _moved(frame: Frame, tensor: Tensor, number: dict[LayerId, LayerId]) -> Tensor:
    return Tensor(frame, Source(number[tensor.source.layer], tensor.source.output), tensor.name, tensor.known)
