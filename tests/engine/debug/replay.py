"""What a run with changes gives, computed apart from the engine: a small recursive interpreter
over models of a few operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import loopscope
from loopscope.ir.address import labels
from loopscope.ir.model import Body, LayerId, ModelGraph, Node

RECORDS = [
    loopscope.Record(),
    loopscope.Record(everything=True),
    loopscope.Record(budget_bytes=600),
]
"""Ways to remember a run: much of it has to be computed again with the last."""
Feeds = Mapping[LayerId, Any]

_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "Add": lambda node, one, other: one + other,
    "Subtract": lambda node, one, other: one - other,
    "Multiply": lambda node, one, other: one * other,
    "Maximum": lambda node, one, other: np.maximum(one, other),
    "Less": lambda node, one, other: one < other,
    "Greater": lambda node, one, other: one > other,
    "Clamp": lambda node, one: np.clip(
        one, np.float32(node.attributes["min"]), np.float32(node.attributes["max"])
    ),
    "ReduceSum": lambda node, one, axes: one.sum(axis=tuple(axes.tolist()), dtype=one.dtype),
}


@dataclass
class Replay:
    """Values by address (``:1`` for other outputs than the first), and how many iterations each
    loop execution ran.
    """

    changes: Mapping[str, Any]
    values: dict[str, np.ndarray] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def run(self, model: loopscope.Model, inputs: list[Any]) -> list[np.ndarray]:
        feeds = {node.id: value for node, value in zip(model.graph.parameters, inputs, strict=True)}
        made = self._graph(model.graph, feeds, "main")
        return [made[node.id] for node in model.graph.results]

    def _graph(self, graph: ModelGraph, feeds: Feeds, place: str) -> dict[LayerId, np.ndarray]:
        """What each Result takes."""
        label = labels(graph)
        known: dict[tuple[LayerId, int], np.ndarray] = {}
        results: dict[LayerId, np.ndarray] = {}
        for node in graph.nodes:
            given = [
                known[source.layer, source.output]
                for source in graph.sources[node.id]
                if source is not None
            ]
            where = f"{place}/{label[node.id]}"
            if node.type == "Result":
                results[node.id] = given[0]
                continue
            for output, value in enumerate(self._node(node, given, feeds, where)):
                address = f"{where}:{output}" if output else where
                known[node.id, output] = self.values[address] = np.asarray(
                    self.changes.get(address, value)
                )
        return results

    def _node(self, node: Node, given: list[np.ndarray], feeds: Feeds, where: str) -> list[Any]:
        match node.type:
            case "Parameter":
                return [feeds[node.id]]
            case "Const":
                assert node.constant is not None
                return [node.constant.array()]
            case "If":
                body = node.body("then" if given[0].item() else "else")
                made = self._graph(body.graph, self._fed(body, given), f"{where}/{body.name}")
                return [made[entry.internal] for entry in body.outputs]
            case "Loop":
                return self._loop(node, given, where)
        with np.errstate(all="ignore"):
            return [_OPERATIONS[node.type](node, *given)]

    @staticmethod
    def _fed(body: Body, given: list[np.ndarray]) -> dict[LayerId, np.ndarray]:
        return {entry.internal: given[entry.external] for entry in body.inputs}

    def _loop(self, node: Node, given: list[np.ndarray], where: str) -> list[Any]:
        body = node.body("body")
        first = self._fed(body, given)
        again = next(
            entry.internal for entry in body.outputs if entry.purpose == "execution_condition"
        )
        rounds: list[dict[LayerId, np.ndarray]] = []
        go = bool(given[1].item())
        while go and len(rounds) < given[0].item():
            carried = (
                {edge.to_layer: rounds[-1][edge.from_layer] for edge in body.back_edges}
                if rounds
                else {}
            )
            rounds.append(self._graph(body.graph, first | carried, f"{where}[{len(rounds)}]/body"))
            go = bool(rounds[-1][again].item())
        self.counts[where] = len(rounds)
        made: list[Any] = []
        for entry in (entry for entry in body.outputs if entry.external != -1):
            each = [one[entry.internal] for one in rounds]
            if entry.axis is not None:
                made.append(np.array(each, np.float32))
            else:
                initial = next(
                    (
                        first[edge.to_layer]
                        for edge in body.back_edges
                        if edge.from_layer == entry.internal
                    ),
                    np.float32(0),
                )
                made.append(each[-1] if each else initial)
        return made
