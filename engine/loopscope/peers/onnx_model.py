"""An ONNX file with its inner values as outputs.

Values of a loop's body are scan outputs with one part per iteration. Function calls are inlined, so
that values inside functions can become outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from loopscope.debug.run import Run
from loopscope.executor.plan.plan import CallRegion, IfRegion, LoopRegion, Program
from loopscope.peers.fingerprint import Fingerprint
from loopscope.peers.probes import Probe, owner, times, varies

_MAX_FILE_BYTES = 2**30


def probed(run: Run, path: Path, probes: Sequence[Probe], prefix: str, target: Path) -> list[Probe]:
    """Write the model of a run with an additional output per probe; return the probes in output
    order.

    An output is named ``prefix`` and its number. The array of a probe under n loops has n leading
    axes, outermost loop first.
    """
    model = onnx.load(str(path))
    writer = _ProbeWriter(run, model)
    available = [probe for probe in probes if probe.program.index in writer.graphs]
    for number, probe in enumerate(available):
        writer.export(probe, f"{prefix}{number}")
    save(model, target)
    return available


def with_attribute(path: Path, name: str, value: int, target: Path) -> Path:
    """Write a model with another value of an attribute in all nodes that have it; return the
    file.
    """
    model = onnx.load(str(path))
    waiting: list[Any] = [model.graph, *model.functions]
    while waiting:
        attributes = (attribute for node in waiting.pop().node for attribute in node.attribute)
        for attribute in attributes:
            waiting += [attribute.g, *attribute.graphs]
            if attribute.name == name:
                attribute.i = value
    save(model, target)
    return target


def save(model: onnx.ModelProto, target: Path) -> None:
    """Write a model whose weights are in memory; those of a large one into a file beside it."""
    onnx.save(
        model,
        str(target),
        save_as_external_data=model.ByteSize() > _MAX_FILE_BYTES,
        all_tensors_to_one_file=True,
    )


class _ProbeWriter:
    def __init__(self, run: Run, model: onnx.ModelProto) -> None:
        self.run = run
        self.graphs = {0: model.graph}
        """Graph by program number; for a function, the graph into which its call is inlined."""
        self.names: dict[int, FreshNames] = {0: FreshNames()}
        for program in run.plan.programs:
            if program.parent is None or program.parent.index not in self.graphs:
                continue
            if owner(program) is not None:
                self.graphs[program.index] = self._body(program)
                self.names[program.index] = self.names[program.parent.index]
            elif isinstance(program.region, CallRegion):
                graph, call = self.graphs[program.parent.index], self._node(program)
                names = inline(model, graph, call, f"loopscope call {program.index}/")
                if names is not None:
                    self.graphs[program.index], self.names[program.index] = graph, names

    def export(self, probe: Probe, name: str) -> None:
        """Pass a value out of its graph and of every enclosing loop and branch."""
        program, shape = probe.program, probe.expected.shape[1:]
        value = self._name(probe)
        if probe.fingerprint is not None:
            value = _fingerprint(
                self.graphs[program.index], value, f"{name}/print", probe.fingerprint
            )
        kind = helper.np_dtype_to_tensor_dtype(probe.expected.dtype)
        while (outer := program.parent) is not None:
            if isinstance(program.region, CallRegion):
                program = outer
                continue
            out = f"{name}/{program.index}"
            self._add_output(program, value, out, kind)
            region = owner(program)
            if isinstance(region, IfRegion):
                other = (
                    region.otherwise.program
                    if program is region.then.program
                    else region.then.program
                )
                graph = self.graphs[other.index]
                zeros = numpy_helper.from_array(np.zeros(shape, probe.expected.dtype))
                graph.node.append(helper.make_node("Constant", [], [f"{out}/zeros"], value=zeros))
                self._add_output(other, f"{out}/zeros", f"{out}/not", kind)
            elif isinstance(region, LoopRegion):
                shape = (times(self.run, region), *shape)
            value = f"{out}/all"
            _append_output(self._node(program), value)
            if isinstance(region, LoopRegion) and varies(self.run, region):
                value = _padded(
                    self.graphs[outer.index], value, np.zeros(shape, probe.expected.dtype)
                )
            program = outer
        self._add_output(program, value, name, kind)

    def _add_output(self, program: Program, value: str, name: str, kind: int) -> None:
        graph = self.graphs[program.index]
        graph.node.append(helper.make_node("Identity", [value], [name]))
        graph.output.append(helper.make_tensor_value_info(name, kind, None))

    def _name(self, probe: Probe) -> str:
        """Return the name of a value in its graph: the output of a node, or a body's input."""
        if probe.position >= 0:
            names = probe.program.instructions[probe.position].node.outputs[probe.output].names
            return self.names[probe.program.index].of(names[0])
        name: str = (
            self.graphs[probe.program.index]
            .input[list(probe.program.parameters).index(probe.layer)]
            .name
        )
        return name

    def _node(self, program: Program) -> onnx.NodeProto:
        """Return the node that a graph belongs to, identified by an output name."""
        assert program.parent is not None
        output = next(
            port.names[0]
            for port in program.parent.instructions[program.owner].node.outputs
            if port.names
        )
        name = self.names[program.parent.index].of(output)
        result: onnx.NodeProto = next(
            node for node in self.graphs[program.parent.index].node if name in node.output
        )
        return result

    def _body(self, program: Program) -> onnx.GraphProto:
        region = owner(program)
        name = "body"
        if isinstance(region, IfRegion):
            name = "then_branch" if program is region.then.program else "else_branch"
        result: onnx.GraphProto = next(
            attribute.g for attribute in self._node(program).attribute if attribute.name == name
        )
        return result


def _padded(graph: onnx.GraphProto, value: str, zeros: np.ndarray) -> str:
    """Add nodes that pad the parts of a value with zeros to the length of ``zeros``; return the
    result's name.
    """
    like = np.array([-1, *zeros.shape[1:]], np.int64)
    constants = {
        "zeros": zeros,
        "shape": like,
        "begin": np.zeros(1, np.int64),
        "end": np.array(zeros.shape[:1], np.int64),
    }
    for name, array in constants.items():
        graph.node.append(
            helper.make_node(
                "Constant", [], [f"{value}/{name}"], value=numpy_helper.from_array(array)
            )
        )
    parts = value
    if zeros.size:  # a runtime does not know the shape for a loop without iterations
        parts = f"{value}/shaped"
        graph.node.append(helper.make_node("Reshape", [value, f"{value}/shape"], [parts]))
    graph.node.append(
        helper.make_node("Concat", [parts, f"{value}/zeros"], [f"{value}/longer"], axis=0)
    )
    bounds = [f"{value}/begin", f"{value}/end"]
    graph.node.append(helper.make_node("Slice", [f"{value}/longer", *bounds], [f"{value}/padded"]))
    return f"{value}/padded"


def _fingerprint(graph: onnx.GraphProto, value: str, name: str, scheme: Fingerprint) -> str:
    """Add nodes that compute ``Fingerprint.of``; return the name of the result."""

    def add(type: str, inputs: Sequence[str], **attributes: Any) -> str:
        graph.node.append(
            helper.make_node(type, inputs, [f"{name}/{len(graph.node)}"], **attributes)
        )
        return str(graph.node[-1].output[0])

    def constant(array: np.ndarray) -> str:
        return add("Constant", [], value=numpy_helper.from_array(array))

    def shaped(source: str, *shape: int) -> str:
        return add("Reshape", [source, constant(np.array(shape, np.int64))])

    buckets = shaped(add("Cast", [value], to=onnx.TensorProto.FLOAT), *scheme.shape)
    largest = add("ReduceMax", [add("Abs", [buckets])], keepdims=0)
    length = add("Sqrt", [add("ReduceSumSquare", [buckets], keepdims=0)])
    products = add("MatMul", [buckets, constant(scheme.signs)])
    parts = [shaped(part, -1) for part in (largest, length, products)]
    return add("Concat", parts, axis=0)


def _append_output(node: onnx.NodeProto, name: str) -> None:
    """Append an output to an If, or a scan output to a loop."""
    node.output.append(name)
    for attribute in node.attribute:
        if attribute.name in ("scan_output_axes", "scan_output_directions"):
            attribute.ints.append(0)


_DEFAULT_DOMAIN = ("", "ai.onnx")


@dataclass(frozen=True, slots=True)
class FreshNames:
    """Names of a function's values by the names in its definition."""

    call_names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names at the call of the function's inputs and outputs."""
    prefix: str = ""
    """Prefix of all other names."""

    def of(self, name: str) -> str:
        """Return the name of a value in the calling graph; empty for an omitted value."""
        if not name:
            return ""
        return self.call_names.get(name, f"{self.prefix}{name}")


def inline(
    model: onnx.ModelProto, graph: onnx.GraphProto, call: onnx.NodeProto, prefix: str
) -> FreshNames | None:
    """Replace a function call by the nodes of the function, and return their names.

    Return None and change nothing if the model does not have the function, or the function uses
    other operation versions.
    """
    function = next(
        (
            candidate
            for candidate in model.functions
            if (candidate.domain, candidate.name) == (call.domain, call.op_type)
        ),
        None,
    )
    if function is None or not _has_same_versions(model, function):
        return None
    call_names = dict.fromkeys(function.input, "") | dict(
        zip(function.input, call.input, strict=False)
    )
    outer = [name or f"{prefix}unused/{number}" for number, name in enumerate(call.output)]
    names = FreshNames(call_names | dict(zip(function.output, outer, strict=False)), prefix)
    attributes = {
        attribute.name: attribute for attribute in (*function.attribute_proto, *call.attribute)
    }
    nodes = [*_copies(function.node, names, attributes), *_identities(function, names, call)]
    index = list(graph.node).index(call)
    for node in reversed(nodes):
        graph.node.insert(
            index + 1, node
        )  # inserted in place, because bodies of other nodes are referenced
    del graph.node[index]
    return names


def _has_same_versions(model: onnx.ModelProto, function: onnx.FunctionProto) -> bool:
    versions = {_domain(opset.domain): opset.version for opset in model.opset_import}
    return all(
        versions.get(_domain(opset.domain), opset.version) == opset.version
        for opset in function.opset_import
    )


def _domain(name: str) -> str:
    return "" if name in _DEFAULT_DOMAIN else name


def _copy_node(node: onnx.NodeProto) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy


def _identities(
    function: onnx.FunctionProto, names: FreshNames, call: onnx.NodeProto
) -> Iterator[onnx.NodeProto]:
    """Yield an Identity for each output of a function that is one of its inputs."""
    for formal, actual in zip(function.output, call.output, strict=False):
        if formal in function.input and actual:
            source = call.input[list(function.input).index(formal)]
            yield onnx.helper.make_node("Identity", [source], [actual])


def _copies(
    nodes: Iterable[onnx.NodeProto],
    names: FreshNames,
    attributes: Mapping[str, onnx.AttributeProto],
) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        copy = _copy_node(node)
        if copy.name:
            copy.name = f"{names.prefix}{copy.name}"
        copy.input[:] = map(names.of, node.input)
        copy.output[:] = map(names.of, node.output)
        del copy.attribute[:]
        for attribute in node.attribute:
            referred = (
                attributes.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
            )
            if referred is None:
                continue  # an attribute omitted at the call
            own = copy.attribute.add()
            own.CopyFrom(referred)
            own.name = attribute.name
            if own.type == onnx.AttributeProto.GRAPH:
                _rename(own.g, names, attributes)
        yield copy


def _rename(
    graph: onnx.GraphProto, names: FreshNames, attributes: Mapping[str, onnx.AttributeProto]
) -> None:
    """Rename all values of a body in a function."""
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = names.of(value.name)
    copies = list(_copies(graph.node, names, attributes))
    del graph.node[:]
    graph.node.extend(copies)
