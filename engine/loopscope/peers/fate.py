"""What a runtime makes of each Loop, If, TensorIterator and Scan of a model: read from the graph
that it really runs, never guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from loopscope.errors import elided
from loopscope.ir.model import BodyName, Model, Node
from loopscope.ir.walk import PlacedGraph, graphs
from loopscope.native.run_once import never
from loopscope.peers.compiled_model import Layer, compiled

Became = Literal["kept", "replaced", "merged", "unrolled", "folded", "not found", "not told"]


@dataclass(frozen=True, slots=True)
class RuntimeFate:
    """What became of one control-flow operation."""

    address: str
    operation: str
    """``Loop``, ``If``, ``TensorIterator``, ``Scan``."""
    became: Became
    runs_as: str
    """What the runtime runs in its place; empty where that cannot be said."""
    sentence: str

    @property
    def badge(self) -> str:
        """A word or two for a picture."""
        match self.became:
            case "kept":
                return "kept"
            case "replaced" | "merged":
                return f"runs as {self.runs_as}"
            case "unrolled" | "folded" | "not found" | "not told":
                return self.became


@dataclass(frozen=True, slots=True)
class Fates:
    """What became of all control flow of a model."""

    runtime: str
    """Name and version."""
    device: str
    regions: tuple[RuntimeFate, ...]
    """An outer operation before those inside it."""


def fates(
    model: Model,
    *,
    device: str = "CPU",
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> Fates:
    """What became of all control flow of a model in its runtime; arguments and errors as
    ``compiled`` has them.
    """
    runtime, layers = compiled(
        model, device=device, seconds=seconds, document=document, stopped=stopped
    )
    return Fates(runtime, device, tuple(fates_of(model, runtime, layers)))


def fates_of(model: Model, runtime: str, layers: Sequence[Layer]) -> Iterator[RuntimeFate]:
    """What became of each control-flow operation, by the operations that a runtime runs."""
    seen: dict[str, Sequence[Layer] | str] = {"main": layers}
    """Of each graph the layers that run it, or why they are not known."""
    for place in graphs(model):
        known = seen[place.address]
        for node in place.graph.nodes:
            if not node.bodies:
                continue
            address = f"{place.address}/{place.labels[node.id]}"
            inside: Inside = {body.name: known for body in node.bodies}
            if isinstance(known, str):
                fate = _untold(address, node, known)
            else:
                fate, inside = _Search(place, node, address, runtime, known).found()
            seen.update({f"{address}/{name}": what for name, what in inside.items()})
            yield fate


def _untold(address: str, node: Node, why: str) -> RuntimeFate:
    return RuntimeFate(
        address,
        node.type,
        "not told",
        "",
        f"What became of {elided(node.name)!r} is not known: {why}.",
    )


Inside = dict[BodyName, "Sequence[Layer] | str"]
"""Of each graph inside an operation the layers that run it, or why they are not known."""
_KEPT = {
    "Loop": ("Loop", "TensorIterator"),
    "TensorIterator": ("TensorIterator", "Loop"),
    "If": ("If",),
    "Scan": ("Scan",),
}
"""The kinds of layers that run an operation as what it is."""
_ATTRIBUTES = {"body": "body", "then": "then_branch", "else": "else_branch"}


@dataclass(frozen=True, slots=True)
class _Search:
    """One control-flow operation, looked for among the layers that run the graph it stands in."""

    place: PlacedGraph
    node: Node
    address: str
    runtime: str
    layers: Sequence[Layer]

    def found(self) -> tuple[RuntimeFate, Inside]:
        name = elided(self.node.name)
        layer = self._under_its_name()
        if layer is not None and layer.kind in _kept_kinds(self.node):
            return self._fate(
                "kept", layer.kind, f"{self.runtime} keeps {name!r} as {_article(layer.kind)}."
            ), self._inside(layer)
        if layer is not None:
            gone = f"{self.runtime} runs {name!r}, which holds it, as {layer.kind}"
            others = [other for other in layer.stands_for if other != self.node.name]
            if others:
                told = f"{self.runtime} merged {name!r} with {', '.join(repr(elided(one)) for one in others[:3])} into one {layer.kind}."
                return self._fate("merged", layer.kind, told), self._all_inside(gone)
            return self._fate(
                "replaced", layer.kind, f"{self.runtime} runs {name!r} as one {layer.kind}."
            ), self._all_inside(gone)
        copies = self._copies()
        if copies:
            told = f"{self.runtime} unrolled {name!r}: it runs {copies:,} {'copy' if copies == 1 else 'copies'} of its body."
            return self._fate("unrolled", "", told), self._all_inside(
                f"{self.runtime} unrolled {name!r}, which holds it"
            )
        branch = self._only_branch()
        if branch:
            told = f"{self.runtime} folded {name!r} to its {branch} branch: the condition is constant there."
            return self._fate("folded", f"{branch} branch", told), self._all_inside(
                f"{self.runtime} folded {name!r}, which holds it"
            )
        told = f"{self.runtime} runs nothing under the name {name!r}: it was merged, unrolled, removed or renamed, which cannot be told apart."
        return self._fate("not found", "", told), self._all_inside(
            f"{name!r}, which holds it, was not found in what {self.runtime} runs"
        )

    def _fate(self, became: Became, runs_as: str, sentence: str) -> RuntimeFate:
        return RuntimeFate(self.address, self.node.type, became, runs_as, sentence)

    def _all_inside(self, why: str) -> Inside:
        return {body.name: why for body in self.node.bodies}

    def _inside(self, layer: Layer) -> Inside:
        given = dict(layer.bodies)
        hidden = f"{self.runtime} does not show what is inside {elided(self.node.name)!r}"
        return {
            body.name: given.get(_ATTRIBUTES.get(body.name, body.name), hidden)
            for body in self.node.bodies
        }

    def _under_its_name(self) -> Layer | None:
        """The layer that says it stands for the operation; None where there is none, or several
        operations share the name.
        """
        names = Counter(node.name for node in self.place.graph.nodes)
        found = (
            [layer for layer in self.layers if self.node.name in layer.stands_for]
            if names[self.node.name] == 1
            else []
        )
        if not found:
            found = [
                layer
                for layer in self.layers
                if layer.kind in _kept_kinds(self.node) and self._gives(layer, names)
            ]
        return found[0] if len(found) == 1 else None

    def _gives(self, layer: Layer, names: Mapping[str, int]) -> bool:
        """Whether a layer is known by an output of the operation: in ONNX only outputs need names,
        and OpenVINO calls a loop that lost some of its outputs after the one that is left.
        """
        given = {name for port in self.node.outputs for name in port.names if name}
        left = {
            f"{self.node.name}.{number}" for number in range(len(self.node.outputs))
        }.difference(names)
        return bool(
            given.intersection(layer.outputs)
            or (names[self.node.name] == 1 and left.intersection(layer.stands_for))
        )

    def _copies(self) -> int:
        """How often the body of an unrolled loop stands there: OpenVINO puts the loop's name and
        a number before the names in it.
        """
        numbered = re.compile(re.escape(self.node.name) + r"/(\d+)/")
        found = (
            numbered.match(name)
            for layer in self.layers
            for name in (layer.name, *layer.stands_for)
        )
        return len({match[1] for match in found if match})

    def _only_branch(self) -> str:
        """The branch of an If whose operations stand where the If stood; empty where neither or
        both do.
        """
        if self.node.type != "If":
            return ""
        others = [
            self.place.graph,
            *(
                body.graph
                for node in self.place.graph.nodes
                if node is not self.node
                for body in node.bodies
            ),
        ]
        elsewhere = {name for graph in others for name in _names(graph.nodes)}
        run = {
            name for layer in self.layers for name in (*layer.stands_for, *layer.outputs)
        } - elsewhere
        found = [
            body.name
            for body in self.node.bodies
            if _runs(body.graph.nodes, _ATTRIBUTES[body.name], run)
        ]
        return found[0] if len(found) == 1 else ""


def _kept_kinds(node: Node) -> Sequence[str]:
    return _KEPT.get(node.type, (node.type,))


def _runs(nodes: Sequence[Node], attribute: str, names: set[str]) -> bool:
    """Whether one of these operations runs: under its own name, or the one that ONNX Runtime
    gives to what it takes out of a branch.
    """
    own = _names(nodes)
    return bool(own & names) or any(
        name.partition(f"{attribute}_")[2] in own for name in names if f"{attribute}_" in name
    )


def _names(nodes: Sequence[Node]) -> set[str]:
    """The names of operations and of what they give."""
    return {
        name
        for node in nodes
        for name in (node.name, *(name for port in node.outputs for name in port.names))
        if name
    }


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "AEIO" else f"a {kind}"
