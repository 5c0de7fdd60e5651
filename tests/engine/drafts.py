"""Small models for tests, written as graphs: nodes by calls, bodies by graphs inside graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np

from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import (
    BackEdge,
    Body,
    Edge,
    InputMap,
    LayerId,
    Model,
    ModelGraph,
    Node,
    OutputMap,
    Port,
)
from loopscope.ir.shape import PartialShape

F16, F32 = ElementType.F16, ElementType.F32
I64, I32, BOOL = ElementType.I64, ElementType.I32, ElementType.BOOLEAN


class Slice(TypedDict, total=False):
    """How a port map cuts or joins: its fields, as ``InputMap`` and ``OutputMap`` have them."""

    axis: int
    start: int
    end: int
    stride: int
    part_size: int


@dataclass(frozen=True)
class Ref:
    """An output of a node."""

    layer: int
    output: int = 0


@dataclass
class Draft:
    """A graph under construction."""

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def _add(self, node: Node, sources: Sequence[Ref]) -> Ref:
        for index, source in enumerate(sources):
            port = self.nodes[source.layer].outputs[source.output].id
            self.edges.append(Edge(LayerId(source.layer), port, node.id, index))
        self.nodes.append(node)
        return Ref(node.id)

    def parameter(self, name: str, element_type: ElementType, shape: Sequence[int]) -> Ref:
        text = ",".join("?" if length < 0 else str(length) for length in shape)
        port = Port(0, element_type, PartialShape.of(shape), (name,))
        attributes = {"shape": text, "element_type": element_type.value}
        return self._add(
            Node(LayerId(len(self.nodes)), name, "Parameter", "opset1", attributes, (), (port,)), ()
        )

    def const(self, value: object, element_type: ElementType = F32, name: str = "") -> Ref:
        array = np.asarray(value, element_type.dtype)
        constant = Constant.of(array)
        number = len(self.nodes)
        attributes = {
            "element_type": element_type.value,
            "shape": ",".join(map(str, array.shape)),
            "offset": "0",
            "size": str(len(constant.data)),
        }
        port = Port(0, element_type, PartialShape.of(array.shape))
        return self._add(
            Node(
                LayerId(number),
                name or f"const_{number}",
                "Const",
                "opset1",
                attributes,
                (),
                (port,),
                constant=constant,
            ),
            (),
        )

    def op(
        self,
        type: str,
        *sources: Ref,
        opset: int = 1,
        name: str = "",
        outputs: int = 1,
        **attributes: str,
    ) -> Ref:
        number = len(self.nodes)
        inputs = tuple(Port(index) for index in range(len(sources)))
        made = tuple(Port(len(sources) + index) for index in range(outputs))
        return self._add(
            Node(
                LayerId(number),
                name or f"{type}_{number}",
                type,
                f"opset{opset}",
                attributes,
                inputs,
                made,
            ),
            sources,
        )

    def result(self, source: Ref, name: str = "") -> Ref:
        number = len(self.nodes)
        return self._add(
            Node(LayerId(number), name or f"result_{number}", "Result", "opset1", {}, (Port(0),)),
            (source,),
        )

    def region(
        self,
        type: str,
        sources: Sequence[Ref],
        bodies: Sequence[Body],
        outputs: int,
        *,
        name: str = "",
        opset: int = 5,
    ) -> Ref:
        number = len(self.nodes)
        inputs = tuple(Port(index) for index in range(len(sources)))
        made = tuple(Port(len(sources) + index) for index in range(outputs))
        node = Node(
            LayerId(number),
            name or f"{type}_{number}",
            type,
            f"opset{opset}",
            {},
            inputs,
            made,
            tuple(bodies),
        )
        return self._add(node, sources)

    def graph(self) -> ModelGraph:
        return ModelGraph(tuple(self.nodes), tuple(self.edges))

    def model(self) -> Model:
        return Model(self.graph(), "draft")


def _uncut(pairs: Iterable[tuple[Ref, Ref]]) -> list[tuple[Ref, Ref, Slice]]:
    """What goes in as it is: from the outer value to the Parameter."""
    return [(source, parameter, {}) for source, parameter in pairs]


def _joining(attributes: Slice) -> Slice:
    """Joined values need an axis."""
    return {"axis": 0, **attributes}


def loop(
    outer: Draft,
    body: Draft,
    trip: Ref,
    condition: Ref,
    *,
    again: Ref,
    carried: Sequence[tuple[Ref, Ref, Ref]] = (),
    invariants: Sequence[tuple[Ref, Ref]] = (),
    sliced: Sequence[tuple[Ref, Ref, Slice]] = (),
    iteration: Ref | None = None,
    last: Sequence[Ref] = (),
    joined: Sequence[tuple[Ref, Slice]] = (),
    name: str = "",
) -> Ref:
    """A Loop-5: ``again``, ``last``, ``joined`` and the third of ``carried`` (initial,
    Parameter, Result) are Results of the body.
    """
    sources = [trip, condition]
    inputs: list[InputMap] = []
    whole = [*((source, parameter) for source, parameter, _ in carried), *invariants]
    for source, parameter, attributes in [*_uncut(whole), *sliced]:
        inputs.append(InputMap(len(sources), LayerId(parameter.layer), **attributes))
        sources.append(source)
    if iteration is not None:
        inputs.append(InputMap(-1, LayerId(iteration.layer), purpose="current_iteration"))
    outputs = [
        OutputMap(len(sources) + index, LayerId(ref.layer)) for index, ref in enumerate(last)
    ]
    outputs += [
        OutputMap(len(sources) + len(last) + index, LayerId(ref.layer), **_joining(attributes))
        for index, (ref, attributes) in enumerate(joined)
    ]
    outputs.append(OutputMap(-1, LayerId(again.layer), purpose="execution_condition"))
    edges = tuple(
        BackEdge(LayerId(result.layer), LayerId(parameter.layer))
        for _, parameter, result in carried
    )
    made = Body("body", body.graph(), tuple(inputs), tuple(outputs), edges)
    return outer.region("Loop", sources, (made,), len(last) + len(joined), name=name)


def tensor_iterator(
    outer: Draft,
    body: Draft,
    *,
    carried: Sequence[tuple[Ref, Ref, Ref]] = (),
    invariants: Sequence[tuple[Ref, Ref]] = (),
    sliced: Sequence[tuple[Ref, Ref, Slice]] = (),
    last: Sequence[Ref] = (),
    joined: Sequence[tuple[Ref, Slice]] = (),
) -> Ref:
    """A TensorIterator-1."""
    whole = [*((source, parameter) for source, parameter, _ in carried), *invariants]
    entries = [*_uncut(whole), *sliced]
    inputs = tuple(
        InputMap(index, LayerId(parameter.layer), **attributes)
        for index, (_, parameter, attributes) in enumerate(entries)
    )
    outputs = [
        OutputMap(len(entries) + index, LayerId(ref.layer)) for index, ref in enumerate(last)
    ]
    outputs += [
        OutputMap(len(entries) + len(last) + index, LayerId(ref.layer), **_joining(attributes))
        for index, (ref, attributes) in enumerate(joined)
    ]
    edges = tuple(
        BackEdge(LayerId(result.layer), LayerId(parameter.layer))
        for _, parameter, result in carried
    )
    made = Body("body", body.graph(), inputs, tuple(outputs), edges)
    return outer.region(
        "TensorIterator",
        [source for source, _, _ in entries],
        (made,),
        len(last) + len(joined),
        opset=1,
    )


def branch(
    name: str, draft: Draft, inputs: Sequence[tuple[int, Ref]], results: Sequence[Ref]
) -> Body:
    """A branch of an If: (outer input number, Parameter) pairs, and the Results in order of the
    If's outputs.
    """
    entries = tuple(InputMap(number, LayerId(parameter.layer)) for number, parameter in inputs)
    outputs = tuple(OutputMap(index, LayerId(ref.layer)) for index, ref in enumerate(results))
    return Body("then" if name == "then" else "else", draft.graph(), entries, outputs)
