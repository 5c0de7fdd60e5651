"""An IR document as graphs: layers, edges, and nested bodies."""

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
from loopscope.read.openvino.drafts import (
    ConstantReader,
    GraphDraft,
    Kind,
    LayerContent,
    LayerDraft,
)
from loopscope.read.openvino.expat_walk import (
    NO_ELEMENTS,
    Attributes,
    Elements,
    ExpatWalk,
    MalformedXML,
)
from loopscope.read.openvino.repeated_blocks import Blocks, PortElements
from loopscope.read.weights import WeightsFile

_VERSIONS = ("10", "11")
# OpenVINO accepts these types in any case. The Model itself depends on their spelling.
_OWN_CONTENT = frozenset({"Parameter", "Result", "Const", "Loop", "If", "TensorIterator"})
_STRUCTURAL = {name.lower(): name for name in _OWN_CONTENT}

_edge = Edge._make


class Document:
    """The state of reading one document: stacks of open graphs and of the layers that contain
    them.
    """

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
        """Blocks after the data of a Const: its rt_info and outputs."""
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
        """True after ``</net>``; as in OpenVINO, malformed text after it is ignored."""
        self.version = 0
        self.graph = ModelGraph((), ())
        self.meta_data: Mapping[str, object] = NO_ATTRIBUTES

    def read(self) -> None:
        """Read the document into ``graph``, ``version`` and ``meta_data``.

        ``ReadError`` with the location of the fault.
        """
        try:
            self._walk.run(self._table())
        except MalformedXML as error:
            if not self._ended:
                raise ReadError(str(error), Where(self._file, error.line)) from None
        except ValueError as error:
            raise ReadError(str(error), self._where()) from None

    def _where(self) -> Where:
        """Return the current location.

        The address may lack a ``~ID``, because it is not yet known which names are unique.
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
            "data": (self._enter_data, NO_ELEMENTS, None),
            "input": (self._enter_inputs, self._inputs.elements, self._leave_inputs),
            "output": (self._enter_outputs, self._outputs.elements, self._leave_outputs),
            "rt_info": (collect, NO_ELEMENTS, self._leave_layer_information),
            "back_edges": (None, {"edge": (self._enter_back_edge, NO_ELEMENTS, None)}, None),
            **self._body_elements("body", "", graph),
            **self._body_elements("then", "then_", graph),
            **self._body_elements("else", "else_", graph),
        }
        graph["layers"] = (
            self._enter_layers,
            {"layer": (self._enter_layer, layer, self._leave_layer)},
            None,
        )
        graph["edges"] = (self._enter_edges, NO_ELEMENTS, None)
        graph["rt_info"] = (collect, NO_ELEMENTS, self._leave_graph_information)
        net: Elements = {**graph, "meta_data": (collect, NO_ELEMENTS, self._leave_meta_data)}
        return {"net": (self._enter_net, net, self._leave_net)}

    def _body_elements(self, name: BodyName, prefix: str, graph: Elements) -> Elements:
        entries: Elements = {
            "input": (
                lambda attributes: (
                    self._layers[-1].port_map(name).inputs.append(fields.input_map(attributes))
                ),
                NO_ELEMENTS,
                None,
            ),
            "output": (
                lambda attributes: (
                    self._layers[-1].port_map(name).outputs.append(fields.output_map(attributes))
                ),
                NO_ELEMENTS,
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
            actual = "no version" if version is None else f"version {shorten(version, 20)!r}"
            raise ValueError(
                f"<net> has {actual}, expected 10 or 11:"
                " convert the original model again with a current OpenVINO"
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
            layer_id = self._numbers[attributes["id"]]
            spelling = attributes["type"]
            opset = attributes["version"]
            declared_name = attributes["name"]
        except KeyError:
            layer_id = fields.natural(attributes, "id", "layer")
            spelling, opset, declared_name = (
                fields.required(attributes, name, "layer") for name in ("type", "version", "name")
            )
        kind = self._kinds.get(spelling) or self._kind(spelling)
        name = declared_name or f"{kind}_{layer_id}"
        if len(name) + len(opset) > self._limits.name:
            self._limits.bounded_name(name, "name of a <layer>")
            self._limits.bounded_name(opset, "version of a <layer>")
        line = self._walk.line
        content = None if kind in _OWN_CONTENT else self._contents.enter()
        if content is not None:
            data, rt_info, inputs, outputs = content
            node = Node(
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
            self._graphs[-1].nodes.append(node)
            return
        draft = LayerDraft(LayerId(layer_id), name, kind, opset, line, NO_ATTRIBUTES, NO_ATTRIBUTES)
        if kind == "Result" and "output_names" in attributes:
            draft.output_names = fields.names(attributes["output_names"])
        self._layers.append(draft)

    def _kind(self, spelled: str) -> str:
        """Return the type of an operation as the Model spells it, and cache it."""
        self._limits.bounded_name(spelled, "type of a <layer>")
        kind = self._kinds[spelled] = _STRUCTURAL.get(spelled.lower(), spelled)
        return kind

    def _leave_layer(self) -> None:
        layer = self._layers[-1]
        if layer.type == "Const":
            self._declare_constant(layer)
        elif layer.type == "Parameter":
            layer.declare_output(*_parameter_type(layer.attributes))
        elif layer.type not in _OWN_CONTENT:
            self._contents.leave((layer.attributes, layer.rt_info, layer.inputs, layer.outputs))
        self._graphs[-1].nodes.append(layer.finish())
        self._layers.pop()

    def _declare_constant(self, layer: LayerDraft) -> None:
        """Set type and shape of a Const's output from its data. Equal constants share the output
        object.
        """
        kind = self._constant_kind
        if layer.constant is None or kind is None:
            raise ValueError("it has no <data>, expected element_type, shape, offset and size")
        if not layer.inputs and layer.port_maps is None:
            self._rests.leave((layer.rt_info, layer.outputs))
        declared_outputs = layer.outputs
        # The ids stay valid because the objects live as long as this Document; outputs are in the
        # entry.
        key = id(declared_outputs), id(kind)
        known = self._constant_outputs.get(key)
        if known is None:
            layer.declare_output(kind.element_type, kind.shape)
            self._constant_outputs[key] = declared_outputs, layer.outputs
        else:
            layer.outputs = known[1]

    def _enter_data(self, attributes: Attributes) -> None:
        """Read the first ``<data>`` of a layer; further ones are ignored, as in OpenVINO."""
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


def _parameter_type(
    attributes: Mapping[str, object],
) -> tuple[ElementType | None, PartialShape | None]:
    """Return type and shape in the ``<data>`` of a Parameter. They override those of the port."""
    kind, shape = attributes.get("element_type"), attributes.get("shape")
    return fields.element_type(str(kind)), None if shape is None else PartialShape.parse(str(shape))
