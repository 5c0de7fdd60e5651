"""Operators that only OpenVINO's frontend translates: a reduced file, and OpenVINO's graph of
it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loopscope.ir.model import LayerId, ModelGraph, Node, OutputRef
from loopscope.read.conversion import read_converted, run_openvino
from loopscope.read.file_limits import ReadLimits
from loopscope.read.tflite.drafts import Declared, Draft, DraftValue
from loopscope.read.tflite.operator_nodes import declared
from loopscope.read.tflite.schema import OperatorInfo, SchemaFile, Subgraph, TensorInfo

MAX_SUBGRAPHS = 16
"""Largest number of subgraphs with operators for OpenVINO, each converted in its own process."""


@dataclass(frozen=True, eq=False)
class Fragment:
    """OpenVINO's graph of some operators of a subgraph, with its inputs and outputs by tensor."""

    graph: ModelGraph
    inputs: Mapping[LayerId, int]
    outputs: Mapping[int, OutputRef]

    def write(
        self,
        draft: Draft,
        info: OperatorInfo,
        contents: Mapping[int, DraftValue],
        tensors: Sequence[TensorInfo],
    ) -> list[DraftValue] | None:
        """Write the nodes of one operator into a graph and return its outputs.

        None if the fragment does not contain them.
        """
        sources = [
            source for number in info.outputs if (source := self.outputs.get(number)) is not None
        ]
        if not sources or len(sources) < len(info.outputs):
            return None
        ends = dict(zip(sources, tensors, strict=True))
        values = self._fed(contents)
        waiting = list(sources)
        while waiting:
            source = waiting[-1]
            node = self.graph.by_id[source.layer]
            feeds = [feed for feed in self.graph.sources[node.id] if feed is not None]
            missing = [feed for feed in feeds if feed not in values]
            if source in values:
                waiting.pop()
            elif node.type == "Parameter" or node.bodies:
                return None
            elif missing:
                waiting += missing
            else:
                output_tensors = [
                    ends.get(OutputRef(node.id, index)) for index in range(len(node.outputs))
                ]
                node_outputs = _copy_node(
                    draft,
                    node,
                    [values[feed] for feed in feeds],
                    output_tensors,
                    f"{tensors[0].name}/{node.type}",
                )
                values |= {
                    OutputRef(node.id, index): value for index, value in enumerate(node_outputs)
                }
        return [values[source] for source in sources]

    def _fed(self, contents: Mapping[int, DraftValue]) -> dict[OutputRef, DraftValue]:
        """Return the values of tensors that the graph around the fragment already contains."""
        sources = [(OutputRef(layer, 0), number) for layer, number in self.inputs.items()]
        sources += [(source, number) for number, source in self.outputs.items()]
        return {source: contents[number] for source, number in sources if number in contents}


def _copy_node(
    draft: Draft,
    node: Node,
    inputs: Sequence[DraftValue],
    output_tensors: Sequence[TensorInfo | None],
    default_name: str,
) -> Sequence[DraftValue]:
    declarations = [
        Declared(port.element_type) if tensor is None else declared(tensor)
        for port, tensor in zip(node.outputs, output_tensors, strict=True)
    ]
    name = next((tensor.name for tensor in output_tensors if tensor is not None), default_name)
    # The offsets of constants lead into the weights of this fragment alone.
    attributes = {
        key: str(text)
        for key, text in node.attributes.items()
        if node.constant is None or key not in ("offset", "size")
    }
    return draft.add(
        node.type, node.opset, name, inputs, declarations, attributes, constant=node.constant
    )


def convert_operators(
    file: SchemaFile, index: int, places: Sequence[int], target: Path, limits: ReadLimits
) -> Fragment | None:
    """Convert the operators at these indices of a subgraph with OpenVINO; None if it fails."""
    subgraph = file.subgraph(index)
    infos = [subgraph.operators[place] for place in places]
    outputs = list(dict.fromkeys(number for info in infos for number in info.outputs))
    used = dict.fromkeys(number for info in infos for number in info.inputs if number >= 0)
    inputs = [
        number
        for number in used
        if number not in outputs and file.constant(subgraph.tensor(number)) is None
    ]
    if any(_is_quantized(subgraph, number) for number in (*inputs, *outputs)):
        return None
    reduced_file = target.with_name(f"operators_{index}.tflite")
    try:
        reduced_file.write_bytes(_reduce_file(file, index, places, inputs, outputs))
        written = reduced_file.with_suffix(".xml")
        run_openvino(reduced_file, written, "read", limits)
        graph = read_converted(written, written.read_bytes(), limits).graph
    except (OSError, ValueError):
        return None
    results = [
        sources[0] for sources in (graph.sources[node.id] for node in graph.results) if sources
    ]
    if len(graph.parameters) != len(inputs) or len(results) != len(outputs):
        return None
    ends = {
        number: source
        for number, source in zip(outputs, results, strict=True)
        if source is not None
    }
    return Fragment(
        graph,
        {node.id: number for node, number in zip(graph.parameters, inputs, strict=True)},
        ends,
    )


def _is_quantized(subgraph: Subgraph, number: int) -> bool:
    return subgraph.tensor(number).quantization is not None


def _reduce_file(
    file: SchemaFile,
    index: int,
    places: Sequence[int],
    inputs: Sequence[int],
    outputs: Sequence[int],
) -> bytes:
    """Return the file with one subgraph of only these operators, inputs and outputs.

    The other tables stay in the file, unused.
    """
    changed = bytearray(file.document)
    root, table = file.root, file.subgraph(index).table
    start, _ = root.vector(2)
    _write_vector(changed, start, [table.position])
    start, _ = table.vector(3)
    _write_vector(changed, start, [table.element(3, place).position for place in places])
    if root.length(7):
        _write_vector(changed, root.vector(7)[0], [])
    for field, numbers in ((1, inputs), (2, outputs)):
        place = table.place(field)
        if not place:
            raise ValueError("the subgraph has no field for its inputs or outputs")
        changed += bytes(-len(changed) % 4)
        struct.pack_into("<I", changed, place, len(changed) - place)
        changed += struct.pack(f"<I{len(numbers)}i", len(numbers), *numbers)
    return bytes(changed)


def _write_vector(changed: bytearray, start: int, targets: Sequence[int]) -> None:
    """Write the offsets of a vector's tables.

    ``ValueError`` if a table is before the vector, because offsets are not negative.
    """
    struct.pack_into("<I", changed, start - 4, len(targets))
    for number, target in enumerate(targets):
        if target <= start + 4 * number:
            raise ValueError("a table lies before the vector that names it")
        struct.pack_into("<I", changed, start + 4 * number, target - start - 4 * number)
