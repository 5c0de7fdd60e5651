"""Fate of each Loop, If, TensorIterator and Scan of a model in its runtime.

It is read from the executed graph: the operations that the runtime executes, with the model
operations that each of them represents.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from loopscope.errors import EngineError, elided
from loopscope.ir.address import PlacedGraph, graphs
from loopscope.ir.model import BodyName, Model, Node
from loopscope.native.run_once import never
from loopscope.peers.other_runtimes import (
    CALLED,
    PACKAGES,
    Patience,
    document_file,
    run_runtime_process,
    runtime_of,
)

Became = Literal["kept", "replaced", "merged", "unrolled", "folded", "not found", "not told"]


@dataclass(frozen=True, slots=True)
class RuntimeFate:
    """Fate of one control-flow operation."""

    address: str
    operation: str
    """``Loop``, ``If``, ``TensorIterator`` or ``Scan``."""
    became: Became
    runs_as: str
    """Operation that the runtime executes instead; empty if unknown."""
    sentence: str

    @property
    def badge(self) -> str:
        """One or two words for a diagram."""
        match self.became:
            case "kept":
                return "kept"
            case "replaced" | "merged":
                return f"runs as {self.runs_as}"
            case "unrolled" | "folded" | "not found" | "not told":
                return self.became


@dataclass(frozen=True, slots=True)
class Fates:
    """Fates of all control flow of a model."""

    runtime: str
    """Name and version."""
    device: str
    regions: tuple[RuntimeFate, ...]
    """Fates, outer operations before inner ones."""


def fates(
    model: Model,
    *,
    device: str = "CPU",
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> Fates:
    """Return the fates of a model's control flow in its runtime; arguments and errors as
    ``compiled``.
    """
    runtime, layers = compiled(
        model, device=device, seconds=seconds, document=document, stopped=stopped
    )
    return Fates(runtime, device, tuple(fates_of(model, runtime, layers)))


def fates_of(model: Model, runtime: str, layers: Sequence[Layer]) -> Iterator[RuntimeFate]:
    """Yield the fate of each control-flow operation, given the operations that a runtime
    executes.
    """
    seen: dict[str, Sequence[Layer] | str] = {"main": layers}
    """Executed layers of each graph, or the reason why they are unknown."""
    for place in graphs(model):
        known = seen[place.address]
        for node in place.graph.nodes:
            if not node.bodies:
                continue
            address = f"{place.address}/{place.labels[node.id]}"
            inside: Inside = {body.name: known for body in node.bodies}
            if isinstance(known, str):
                fate = _unknown_fate(address, node, known)
            else:
                fate, inside = _Search(place, node, address, runtime, known).fate()
            seen.update({f"{address}/{name}": what for name, what in inside.items()})
            yield fate


def _unknown_fate(address: str, node: Node, why: str) -> RuntimeFate:
    return RuntimeFate(
        address,
        node.type,
        "not told",
        "",
        f"What became of {elided(node.name)!r} is not known: {why}.",
    )


Inside = dict[BodyName, "Sequence[Layer] | str"]
"""Executed layers of each inner graph, or the reason why they are unknown."""
_KEPT_KINDS = {
    "Loop": ("Loop", "TensorIterator"),
    "TensorIterator": ("TensorIterator", "Loop"),
    "If": ("If",),
    "Scan": ("Scan",),
}
"""Kinds of layers that execute an operation unchanged."""
_ATTRIBUTES = {"body": "body", "then": "then_branch", "else": "else_branch"}


@dataclass(frozen=True, slots=True)
class _Search:
    """Search for a control-flow operation among the layers that execute its graph."""

    place: PlacedGraph
    node: Node
    address: str
    runtime: str
    layers: Sequence[Layer]

    def fate(self) -> tuple[RuntimeFate, Inside]:
        name = elided(self.node.name)
        layer = self._layer_by_name()
        if layer is not None and layer.kind in _kept_kinds(self.node):
            return self._fate(
                "kept", layer.kind, f"{self.runtime} keeps {name!r} as {_article(layer.kind)}."
            ), self._inside(layer)
        if layer is not None:
            reason = f"{self.runtime} runs {name!r}, which holds it, as {layer.kind}"
            others = [other for other in layer.stands_for if other != self.node.name]
            if others:
                merged = ", ".join(repr(elided(other)) for other in others[:3])
                sentence = f"{self.runtime} merged {name!r} with {merged} into one {layer.kind}."
                return self._fate("merged", layer.kind, sentence), self._unknown_inside(reason)
            return self._fate(
                "replaced", layer.kind, f"{self.runtime} runs {name!r} as one {layer.kind}."
            ), self._unknown_inside(reason)
        copies = self._copies()
        if copies:
            words = "copy" if copies == 1 else "copies"
            sentence = f"{self.runtime} unrolled {name!r}: it runs {copies:,} {words} of its body."
            return self._fate("unrolled", "", sentence), self._unknown_inside(
                f"{self.runtime} unrolled {name!r}, which holds it"
            )
        branch = self._only_branch()
        if branch:
            sentence = (
                f"{self.runtime} folded {name!r} to its {branch} branch: "
                f"the condition is constant there."
            )
            return self._fate("folded", f"{branch} branch", sentence), self._unknown_inside(
                f"{self.runtime} folded {name!r}, which holds it"
            )
        sentence = (
            f"{self.runtime} runs nothing under the name {name!r}: "
            f"it was merged, unrolled, removed or renamed, which cannot be told apart."
        )
        return self._fate("not found", "", sentence), self._unknown_inside(
            f"{name!r}, which holds it, was not found in what {self.runtime} runs"
        )

    def _fate(self, became: Became, runs_as: str, sentence: str) -> RuntimeFate:
        return RuntimeFate(self.address, self.node.type, became, runs_as, sentence)

    def _unknown_inside(self, why: str) -> Inside:
        return {body.name: why for body in self.node.bodies}

    def _inside(self, layer: Layer) -> Inside:
        bodies = dict(layer.bodies)
        hidden = f"{self.runtime} does not show what is inside {elided(self.node.name)!r}"
        return {
            body.name: bodies.get(_ATTRIBUTES.get(body.name, body.name), hidden)
            for body in self.node.bodies
        }

    def _layer_by_name(self) -> Layer | None:
        """Return the layer that represents the operation; None if there is none, or if its name is
        not unique.
        """
        names = Counter(node.name for node in self.place.graph.nodes)
        layers = (
            [layer for layer in self.layers if self.node.name in layer.stands_for]
            if names[self.node.name] == 1
            else []
        )
        if not layers:
            layers = [
                layer
                for layer in self.layers
                if layer.kind in _kept_kinds(self.node) and self._is_known_by_output(layer, names)
            ]
        return layers[0] if len(layers) == 1 else None

    def _is_known_by_output(self, layer: Layer, names: Mapping[str, int]) -> bool:
        """Return True if a layer is known by an output of the operation.

        ONNX requires names only for outputs. OpenVINO names a loop that lost outputs after a
        remaining output.
        """
        output_names = {name for port in self.node.outputs for name in port.names if name}
        remaining = {
            f"{self.node.name}.{number}" for number in range(len(self.node.outputs))
        }.difference(names)
        return bool(
            output_names.intersection(layer.outputs)
            or (names[self.node.name] == 1 and remaining.intersection(layer.stands_for))
        )

    def _copies(self) -> int:
        """Return the number of copies of an unrolled loop's body.

        OpenVINO prefixes the names in a copy with the loop's name and a number.
        """
        numbered = re.compile(re.escape(self.node.name) + r"/(\d+)/")
        matches = (
            numbered.match(name)
            for layer in self.layers
            for name in (layer.name, *layer.stands_for)
        )
        return len({match[1] for match in matches if match})

    def _only_branch(self) -> str:
        """Return the branch of an If whose operations replace the If; empty if it is not unique."""
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
        executed = {
            name for layer in self.layers for name in (*layer.stands_for, *layer.outputs)
        } - elsewhere
        branches = [
            body.name
            for body in self.node.bodies
            if _runs_any(body.graph.nodes, _ATTRIBUTES[body.name], executed)
        ]
        return branches[0] if len(branches) == 1 else ""


def _kept_kinds(node: Node) -> Sequence[str]:
    return _KEPT_KINDS.get(node.type, (node.type,))


def _runs_any(nodes: Sequence[Node], attribute: str, names: set[str]) -> bool:
    """Return True if one of these operations runs, under its name or the name that ONNX Runtime
    derives for an inlined branch.
    """
    own = _names(nodes)
    return bool(own & names) or any(
        name.partition(f"{attribute}_")[2] in own for name in names if f"{attribute}_" in name
    )


def _names(nodes: Sequence[Node]) -> set[str]:
    """Return the names of operations and of their outputs."""
    return {
        name
        for node in nodes
        for name in (node.name, *(name for port in node.outputs for name in port.names))
        if name
    }


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "AEIO" else f"a {kind}"


@dataclass(frozen=True, slots=True)
class Layer:
    """An operation of the graph that a runtime executes."""

    name: str
    kind: str
    """Operation as the runtime names it: ``TensorIterator``, ``GatedDeltaNet``, ``Subgraph``; ONNX
    Runtime's operation type.
    """
    stands_for: tuple[str, ...]
    """Names of the model operations that it computes."""
    outputs: tuple[str, ...] = ()
    """Names of the outputs; ONNX only."""
    bodies: tuple[tuple[str, tuple[Layer, ...]], ...] = ()
    """Inner graphs by attribute name; ONNX only, because OpenVINO does not show them."""


def compiled(
    model: Model,
    *,
    device: str = "CPU",
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> tuple[str, tuple[Layer, ...]]:
    """Return name and version of a model's runtime, and the operations that it executes.

    The runtime is OpenVINO for IR and ONNX Runtime for ONNX. It compiles the model in a separate
    process. ``document`` is the content of an ONNX file, for a model read from bytes. Raise
    ``EngineError`` if the runtime is not installed, does not support the model or device, or
    exceeds the time.
    """
    called = CALLED[model.dialect]
    if not runtime_of(model):
        package = PACKAGES[model.dialect]
        raise EngineError(
            f"to see what {called} makes of the model, install {package}: pip install {package}"
        )
    with tempfile.TemporaryDirectory(prefix="loopscope-") as name:
        folder = Path(name)
        plain, target = document_file(model, folder, document), folder / "layers.json"
        process = Path(__file__).with_name(f"{PACKAGES[model.dialect]}_layers_process.py")
        patience = Patience(seconds, stopped)
        version = run_runtime_process(
            called,
            "compile",
            process,
            plain,
            device,
            target,
            patience=patience,
            detail=f" for {device}",
        )
        return version, _layers(json.loads(target.read_text("utf-8")))


def _layers(entries: Sequence[dict[str, object]]) -> tuple[Layer, ...]:
    """Convert the layers that a process reported, including inner graphs."""
    result: list[Layer] = []
    for entry in entries:
        bodies = entry.get("bodies", {})
        assert isinstance(bodies, dict)
        inside = tuple((str(name), _layers(body)) for name, body in bodies.items())
        names = [
            tuple(map(str, listed)) if isinstance(listed := entry.get(key, []), list) else ()
            for key in ("stands_for", "outputs")
        ]
        result.append(Layer(str(entry["name"]), str(entry["kind"]), names[0], names[1], inside))
    return tuple(result)
