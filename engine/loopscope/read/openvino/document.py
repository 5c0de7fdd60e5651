"""An IR document as graphs: layers, edges, and bodies inside bodies."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from loopscope.errors import ReadError, Where, shorten
from loopscope.ir.address import ROOT, encode
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import NO_ATTRIBUTES, BodyName, Edge, LayerId, ModelGraph, Node, Port
from loopscope.ir.shape import PartialShape
from loopscope.read.file_limits import ReadLimits
from loopscope.read.openvino import fields
from loopscope.read.openvino.constants import ConstantReader, Kind
from loopscope.read.openvino.drafts import GraphDraft, LayerContent, LayerDraft
from loopscope.read.openvino.expat_walk import (
    NOTHING,
    Attributes,
    Elements,
    ExpatWalk,
    MalformedXML,
)
from loopscope.read.openvino.ports import PortElements
from loopscope.read.openvino.repeated_blocks import Blocks
from loopscope.read.weights import WeightsFile

_VERSIONS = ("10", "11")
# OpenVINO's reader takes types in any case; these are the ones that mean something to the Model
# itself.
_OWN_CONTENT = frozenset({"Parameter", "Result", "Const", "Loop", "If", "TensorIterator"})
_STRUCTURAL = {name.lower(): name for name in _OWN_CONTENT}

_edge = Edge._make


class Document:
    """What has been read of one document: a stack of graphs and of the layers that hold them."""

    def __init__(
        self, document: bytes, file: str, weights: WeightsFile, limits: ReadLimits
    ) -> None:
        self._file = file
        self._constants = ConstantReader(weights)
        self._limits = limits
        self._walk = ExpatWalk(document, limits)
        self._inputs = PortElements(self._walk, limits, "input")
        self._outputs = PortElements(self._walk, limits, "output")
        self._contents: Blocks[LayerContent] = Blocks(self._walk, "layer")
        self._rests: Blocks[tuple[Mapping[str, object], tuple[Port, ...]]] = Blocks(
            self._walk, "layer"
        )
        """What follows the data of a Const: its rt_info and outputs."""
        self._numbers = fields.Numbers()
        self._graphs: list[GraphDraft] = []
        self._layers: list[LayerDraft] = []
        self._bodies: list[BodyName] = []
        self._kinds: dict[str, str] = {}
        self._constant_kind: Kind | None = None
        self._constant_outputs: dict[
            tuple[int, int], tuple[tuple[Port, ...], tuple[Port, ...]]
        ] = {}
        self._ended = False
        """Whether ``</net>`` has come: what stands behind it does no harm, as in OpenVINO."""
        self.version = 0
        self.graph = ModelGraph((), ())
        self.meta_data: Mapping[str, object] = NO_ATTRIBUTES

    def read(self) -> None:
        """Reads it all into ``graph``, ``version``, ``meta_data``; ``ReadError`` says what is
        wrong and where.
        """
        try:
            self._walk.run(self._table())
        except MalformedXML as error:
            if not self._ended:
                raise ReadError(str(error), Where(self._file, error.line)) from None
        except ValueError as error:
            raise ReadError(str(error), self._where()) from None

    def _where(self) -> Where:
        """Where the walk is now; names are not yet known to be unique, so the address may lack a
        ``~ID``.
        """
        names = [encode(shorten(layer.name, 40)) for layer in self._layers]
        path = [
            part for pair in zip(names, [*self._bodies, ""], strict=False) for part in pair if part
        ]
        kind = f"{self._layers[-1].type} {self._layers[-1].opset}" if self._layers else ""
        address = "/".join([ROOT, *(path if len(path) < 12 else [*path[:5], "...", *path[-5:]])])
        return Where(
            self._file, self._walk.line, address if self._layers else "", shorten(kind, 60)
        )

    def _table(self) -> Elements:
        collect = self._walk.collect
        graph: Elements = {}
        layer: Elements = {
            "data": (self._enter_data, NOTHING, None),
            "input": (self._enter_inputs, self._inputs.elements, self._leave_inputs),
            "output": (self._enter_outputs, self._outputs.elements, self._leave_outputs),
            "rt_info": (collect, NOTHING, self._leave_layer_information),
            "back_edges": (None, {"edge": (self._enter_back_edge, NOTHING, None)}, None),
            **self._body_elements("body", "", graph),
            **self._body_elements("then", "then_", graph),
            **self._body_elements("else", "else_", graph),
        }
        graph["layers"] = (
            self._enter_layers,
            {"layer": (self._enter_layer, layer, self._leave_layer)},
            None,
        )
        graph["edges"] = (self._enter_edges, NOTHING, None)
        graph["rt_info"] = (collect, NOTHING, self._leave_graph_information)
        net: Elements = {**graph, "meta_data": (collect, NOTHING, self._leave_meta_data)}
        return {"net": (self._enter_net, net, self._leave_net)}

    def _body_elements(self, name: BodyName, prefix: str, graph: Elements) -> Elements:
        entries: Elements = {
            "input": (
                lambda attributes: (
                    self._layers[-1].port_map(name).inputs.append(fields.input_map(attributes))
                ),
                NOTHING,
                None,
            ),
            "output": (
                lambda attributes: (
                    self._layers[-1].port_map(name).outputs.append(fields.output_map(attributes))
                ),
                NOTHING,
                None,
            ),
        }
        return {
            f"{prefix}port_map": (None, entries, None),
            f"{prefix}body": (lambda attributes: self._enter_body(name), graph, self._leave_body),
        }

    # The outermost element

    def _enter_net(self, attributes: Attributes) -> None:
        version = attributes.get("version")
        if version not in _VERSIONS:
            found = "no version" if version is None else f"version {shorten(version, 20)!r}"
            raise ValueError(
                f"<net> has {found}, expected 10 or 11: convert the original model again with a current OpenVINO"
            )
        self.version = int(version)
        self._graphs.append(
            GraphDraft(self._limits.bounded_name(attributes.get("name", ""), "name of <net>"))
        )

    def _leave_net(self) -> None:
        self.graph = self._graphs[-1].finish()
        self._ended = True

    def _leave_meta_data(self) -> None:
        self.meta_data = self._walk.information

    # Graphs

    def _enter_layers(self, attributes: Attributes) -> None:
        self._graphs[-1].has_layers = True

    def _enter_edges(self, attributes: Attributes) -> None:
        numbers, edges = self._numbers, self._graphs[-1].edges

        def enter_edge(edge: Attributes) -> None:
            try:
                ends = (
                    numbers[edge["from-layer"]],
                    numbers[edge["from-port"]],
                    numbers[edge["to-layer"]],
                    numbers[edge["to-port"]],
                )
                edges.append(_edge(ends))
            except KeyError:
                edges.append(fields.edge(edge))

        self._walk.each("edge", enter_edge)

    def _leave_graph_information(self) -> None:
        self._graphs[-1].rt_info = self._walk.information

    def _enter_body(self, name: BodyName) -> None:
        if len(self._graphs) > self._limits.depth:
            raise ValueError(
                f"bodies are nested deeper than {self._limits.depth}, the limit 'depth'"
            )
        self._graphs.append(GraphDraft())
        self._bodies.append(name)

    def _leave_body(self) -> None:
        self._layers[-1].port_map(self._bodies[-1]).graph = self._graphs[-1].finish()
        self._graphs.pop()
        self._bodies.pop()

    # Layers

    def _enter_layer(self, attributes: Attributes) -> None:
        try:
            layer_id, spelled, opset, given = (
                self._numbers[attributes["id"]],
                attributes["type"],
                attributes["version"],
                attributes["name"],
            )
        except KeyError:
            layer_id = fields.natural(attributes, "id", "layer")
            spelled, opset, given = (
                fields.required(attributes, name, "layer") for name in ("type", "version", "name")
            )
        kind = self._kinds.get(spelled) or self._kind(spelled)
        name = given or f"{kind}_{layer_id}"
        if len(name) + len(opset) > self._limits.name:
            self._limits.bounded_name(name, "name of a <layer>")
            self._limits.bounded_name(opset, "version of a <layer>")
        line = self._walk.line
        known = None if kind in _OWN_CONTENT else self._contents.enter()
        if known is not None:
            data, rt_info, inputs, outputs = known
            made = Node(
                LayerId(layer_id),
                name,
                kind,
                opset,
                data,
                inputs,
                outputs,
                (),
                None,
                rt_info,
                line,
                (),
            )
            self._graphs[-1].nodes.append(made)
            return
        draft = LayerDraft(LayerId(layer_id), name, kind, opset, line, NO_ATTRIBUTES, NO_ATTRIBUTES)
        if kind == "Result" and "output_names" in attributes:
            draft.output_names = fields.names(attributes["output_names"])
        self._layers.append(draft)

    def _kind(self, spelled: str) -> str:
        """The type of an operation as the Model spells it, remembered for the next."""
        self._limits.bounded_name(spelled, "type of a <layer>")
        kind = self._kinds[spelled] = _STRUCTURAL.get(spelled.lower(), spelled)
        return kind

    def _leave_layer(self) -> None:
        layer = self._layers[-1]
        if layer.type == "Const":
            self._declare_constant(layer)
        elif layer.type == "Parameter":
            layer.declare_output(*_declared(layer.attributes))
        elif layer.type not in _OWN_CONTENT:
            self._contents.leave((layer.attributes, layer.rt_info, layer.inputs, layer.outputs))
        self._graphs[-1].nodes.append(layer.finish())
        self._layers.pop()

    def _declare_constant(self, layer: LayerDraft) -> None:
        """Its data decides type and shape of its output; what that gives is one object for equal
        constants.
        """
        kind = self._constant_kind
        if layer.constant is None or kind is None:
            raise ValueError("it has no <data>, expected element_type, shape, offset and size")
        if not layer.inputs and layer.port_maps is None:
            self._rests.leave((layer.rt_info, layer.outputs))
        said = layer.outputs
        # The objects behind both numbers live as long as the reading: ``said`` in the entry itself.
        key = id(said), id(kind)
        known = self._constant_outputs.get(key)
        if known is None:
            layer.declare_output(kind.element_type, kind.shape)
            self._constant_outputs[key] = said, layer.outputs
        else:
            layer.outputs = known[1]

    def _enter_data(self, attributes: Attributes) -> None:
        """The first of a layer counts, as in OpenVINO."""
        self._limits.short_texts(attributes)
        layer = self._layers[-1]
        if layer.attributes is not NO_ATTRIBUTES:
            return
        if layer.type == "Const":
            self._enter_constant(layer, attributes)
        layer.attributes = MappingProxyType(attributes)

    def _enter_constant(self, layer: LayerDraft, attributes: Attributes) -> None:
        first = layer.constant is None
        layer.constant, self._constant_kind = self._constants.read(attributes)
        if not first or layer.inputs or layer.outputs or layer.rt_info or layer.port_maps:
            self._rests.forget()
            return
        known = self._rests.enter()
        if known is not None:
            layer.rt_info, layer.outputs = known

    def _leave_layer_information(self) -> None:
        self._layers[-1].rt_info = self._walk.information

    def _enter_back_edge(self, attributes: Attributes) -> None:
        self._layers[-1].port_map("body").back_edges.append(fields.back_edge(attributes))

    def _enter_inputs(self, attributes: Attributes) -> None:
        self._layers[-1].inputs = self._inputs.enter() or ()

    def _enter_outputs(self, attributes: Attributes) -> None:
        self._layers[-1].outputs = self._outputs.enter() or ()

    def _leave_inputs(self) -> None:
        self._layers[-1].inputs = self._inputs.leave()

    def _leave_outputs(self) -> None:
        self._layers[-1].outputs = self._outputs.leave()


def _declared(attributes: Mapping[str, object]) -> tuple[ElementType | None, PartialShape | None]:
    """Type and shape in the ``<data>`` of a Parameter, which count; those of the port may be
    wrong.
    """
    kind, shape = attributes.get("element_type"), attributes.get("shape")
    return fields.element_type(str(kind)), None if shape is None else PartialShape.parse(str(shape))
