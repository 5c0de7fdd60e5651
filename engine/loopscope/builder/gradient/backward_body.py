"""Body of the backward loop of a loop: a copy of the forward body followed by its derivatives, and
the ports that lead into and out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.builder.frame import GraphFrame
from loopscope.builder.gradient.backward_ports import (
    BackwardCarried,
    Fed,
    Joined,
    Product,
    Products,
    RecordRequest,
    length_of,
)
from loopscope.builder.gradient.forward_values import ForwardValues
from loopscope.builder.gradient.node_edits import adopt
from loopscope.builder.gradient.step import BodyTensors, Flow, GradientStep, filled, zeros
from loopscope.builder.tensor import Tensor
from loopscope.checks import region
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import SCAN, InputMap, LayerId, OutputMap, OutputRef
from loopscope.ir.shape import PartialShape, static
from loopscope.ops.declare import Known

Reverse = Callable[[Sequence[tuple[Tensor, Tensor]], Sequence[Tensor]], list[Tensor | None]]
"""Function from targets with their adjoints to the adjoints of sources, all in the current graph or
body.
"""


@dataclass(frozen=True, slots=True, eq=False)
class InputAdjoint:
    """Adjoint of an input: a last value, concatenated slices, or a product."""

    external: int
    entry: InputMap
    port: BackwardCarried | Joined | Product

    @property
    def joined(self) -> tuple[Joined, ...]:
        """Ports that are concatenated over the iterations for this adjoint."""
        match self.port:
            case Joined() as one:
                return (one,)
            case Product(left, right):
                return left, right
            case BackwardCarried():
                return ()

    def is_made_of(self, port: object) -> bool:
        """Return True if an output of the backward loop contributes to this adjoint."""
        return port is self.port or port in self.joined


class BackwardBody:
    """The body of a backward loop, under construction in a frame of its own."""

    def __init__(
        self,
        step: GradientStep,
        inside: BodyTensors,
        flow: Flow,
        adjoints: Mapping[OutputMap, Tensor],
    ) -> None:
        self.step, self.inside, self.flow, self.adjoints = step, inside, flow, adjoints
        self.graph, self.body = step.graph, inside.body
        self.frame = GraphFrame(
            self.graph, self.graph.frame, f"the backward loop of {step.node.name!r}"
        )
        self.values = ForwardValues(step, inside, self.frame)
        self._fed: list[Fed] = []
        self.adjoints_carried: list[BackwardCarried] = []
        self.of_state: dict[LayerId, Tensor] = {}
        """Adjoint of each carried Parameter, from the following forward iteration."""
        self.initial: dict[LayerId, Tensor | None] = {}
        """Adjoint of each carried value after the last iteration."""
        self.input_adjoints: list[InputAdjoint] = []
        self.products = Products(self.frame)

    @property
    def fed(self) -> list[Fed]:
        """Ports that the backward loop receives in each iteration and does not change."""
        return [*self.values.fed, *self._fed]

    @property
    def carried(self) -> list[BackwardCarried]:
        """Carried ports: the adjoints first, then what recomputes the forward values."""
        return [*self.adjoints_carried, *self.values.carried]

    @property
    def joined(self) -> list[Joined]:
        """All concatenated ports, each once."""
        return list(dict.fromkeys(port for item in self.input_adjoints for port in item.joined))

    def trace(self, reverse: Reverse) -> None:
        """Build the forward body with its values in this iteration, and the derivatives of its
        nodes.
        """
        graph = self.body.graph
        bound = {parameter.id: self.values.of(parameter) for parameter in graph.parameters}
        copies = adopt(self.frame, graph, self.inside.known, bound)
        incoming = self._incoming(copies)
        seeds = [
            (copies[source], adjoint)
            for layer, parts in incoming.items()
            if (source := self.inside.source(layer)) is not None
            for adjoint in parts
        ]
        layers = [node.id for node in graph.parameters if node.id in self.flow.parameters]
        with self.graph.within("backward"):
            input_adjoints = reverse(seeds, [bound[layer] for layer in layers])
            for layer, adjoint in zip(layers, input_adjoints, strict=True):
                self._leave(layer, bound[layer], adjoint)

    def _incoming(self, copies: Mapping[OutputRef, Tensor]) -> dict[LayerId, list[Tensor]]:
        """Return the adjoint of each Result in this iteration, as summands."""
        parts: dict[LayerId, list[Tensor]] = {layer: [] for layer in self.flow.results}
        last = {
            entry.internal: adjoint
            for entry, adjoint in self.adjoints.items()
            if entry.axis is None
        }
        carried = self.flow.parameters - region.per_iteration_parameters(self.body)
        for edge in self.body.back_edges:
            if edge.to_layer in carried:
                known = self.inside.known(edge.to_layer)
                name = f"adjoint_of_{self.body.graph.by_id[edge.to_layer].name}"
                parameter = self.frame.parameter(name, Known(known.element_type, known.shape))
                self.of_state[edge.to_layer] = parameter
                self.initial[edge.to_layer] = last.pop(edge.from_layer, None)
                parts.setdefault(edge.from_layer, []).append(parameter)
        for layer, adjoint in last.items():
            if layer in parts:
                parts[layer].append(self._only_in_the_last(layer, adjoint))
        for entry, adjoint in self.adjoints.items():
            if entry.axis is not None and entry.internal in parts:
                source = self.inside.source(entry.internal)
                assert source is not None
                parts[entry.internal].append(self._part_of(entry, adjoint, copies[source]))
        return parts

    def _only_in_the_last(self, layer: LayerId, adjoint: Tensor) -> Tensor:
        """Return the adjoint of a last value that is not carried: it is nonzero in the last forward
        iteration, which is the first backward one.
        """
        name = f"adjoint_of_{self.body.graph.by_id[layer].name}"
        parameter = self.frame.parameter(name, Known(adjoint.element_type, adjoint.shape))
        self.adjoints_carried.append(
            BackwardCarried(parameter, lambda _: adjoint, filled(self.graph, 0, parameter))
        )
        return parameter

    def _part_of(self, entry: OutputMap, adjoint: Tensor, joined: Tensor) -> Tensor:
        """Return this iteration's slice of the adjoint of a concatenated output; ``joined`` is the
        forward slice.
        """
        known = self.inside.known(entry.internal)
        result = self.body.graph.by_id[entry.internal]
        rank = known.shape.rank
        if rank is None or entry.axis is None:
            raise ValueError(f"the rank of the concatenated value {result.name!r} is not known")
        adds_axis = entry.stacked or rank == 0
        axis = entry.axis % (rank + 1 if adds_axis else rank)
        dimensions = known.shape.dimensions or ()
        if adds_axis:
            dimensions = (*dimensions[:axis], static(1), *dimensions[axis:])
        elif not dimensions[axis].is_static:
            return self._part_of_any_length(entry, adjoint, joined, axis)
        size = dimensions[axis].length
        part = self.frame.parameter(
            f"adjoint_of_{result.name}_part", Known(adjoint.element_type, PartialShape(dimensions))
        )
        self._fed.append(Fed(part, lambda _: adjoint, axis, -size if entry.stride > 0 else size))
        return self.graph.apply("Squeeze", (part, np.array([axis])), {})[0] if adds_axis else part

    def _part_of_any_length(
        self, entry: OutputMap, adjoint: Tensor, joined: Tensor, axis: int
    ) -> Tensor:
        """Return this iteration's slice of an adjoint whose slices have different lengths.

        The position in the concatenated tensor is carried, and each slice moves it by its length.
        """
        name = f"adjoint_of_{self.body.graph.by_id[entry.internal].name}"
        whole = self.frame.parameter(f"{name}_all", adjoint.known)
        self._fed.append(Fed(whole, lambda _: adjoint))
        place = self.frame.parameter(f"{name}_place", Known(ElementType.I64, PartialShape.of([1])))
        length = length_of(self.graph, joined, axis)
        # The last iteration runs first in the backward loop. Its slice is the last one, or the
        # first one if the slices are concatenated backwards.
        moved = place - length if entry.stride > 0 else place + length
        begin, end = (moved, place) if entry.stride > 0 else (place, moved)
        first = (
            (lambda _: length_of(self.graph, adjoint, axis))
            if entry.stride > 0
            else (lambda _: self.graph.constant(np.array([0])))
        )
        self.adjoints_carried.append(BackwardCarried(place, first, moved))
        return self.graph.apply("Slice", (whole, begin, end, np.array([1]), np.array([axis])), {})[
            0
        ]

    def _leave(self, layer: LayerId, value: Tensor, contribution: Tensor | None) -> None:
        """Pass on a Parameter's adjoint of this iteration: carry it to the previous forward
        iteration, add it to a sum, or concatenate it.
        """
        adjoint = filled(self.graph, 0, value) if contribution is None else contribution
        entry = next((item for item in self.body.inputs if item.internal == layer), None)
        if layer in self.of_state:
            port = self._carried_adjoint(layer, adjoint)
            self.adjoints_carried.append(port)
            if entry is not None and entry.external in self.step.active:
                self.input_adjoints.append(InputAdjoint(entry.external, entry, port))
        elif entry is None or entry.external not in self.step.active:
            return
        elif entry.axis is not None:
            self._join(entry, adjoint)
        elif contribution is not None:
            outer = self.step.fed[entry.external]
            assert outer is not None
            product = self.products.of(contribution)
            if product is not None:
                self.input_adjoints.append(InputAdjoint(entry.external, entry, product))
                return
            total = self.frame.parameter(
                f"gradient_of_{self.body.graph.by_id[layer].name}",
                Known(outer.element_type, outer.shape),
            )
            if adjoint.element_type is not outer.element_type:
                adjoint = self.graph.apply(
                    "Convert", (adjoint,), {"destination_type": outer.element_type}
                )[0]
            port = BackwardCarried(total, lambda _: filled(self.graph, 0, outer), total + adjoint)
            self.adjoints_carried.append(port)
            self.input_adjoints.append(InputAdjoint(entry.external, entry, port))

    def _join(self, entry: InputMap, adjoint: Tensor) -> None:
        outer = self.step.fed[entry.external]
        assert outer is not None
        assert outer.rank is not None
        assert entry.axis is not None
        axis = entry.axis % outer.rank
        if self.step.node.type == SCAN:
            adjoint = self.graph.apply("Unsqueeze", (adjoint, np.array([axis])), {})[0]
        port = Joined(adjoint, axis, -entry.part_size if entry.stride > 0 else entry.part_size)
        self.input_adjoints.append(InputAdjoint(entry.external, entry, port))

    def _carried_adjoint(self, layer: LayerId, after: Tensor) -> BackwardCarried:
        """Return the port of a carried adjoint. It starts with the adjoint of the last-value
        output, or with zeros of that shape.
        """
        first, known = self.initial[layer], self.inside.known(layer)
        if first is not None:
            return BackwardCarried(self.of_state[layer], lambda _: first, after)
        if known.shape.is_static:
            return BackwardCarried(self.of_state[layer], lambda _: zeros(self.graph, known), after)
        edge = next(edge for edge in self.body.back_edges if edge.to_layer == layer)
        last = RecordRequest("last", edge.from_layer, known)
        return BackwardCarried(
            self.of_state[layer],
            lambda outside: filled(self.graph, 0, outside.recorded[last]),
            after,
            (last,),
        )
