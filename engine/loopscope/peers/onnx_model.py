"""An ONNX file that gives the values inside it as outputs: those of a loop's body as scan
outputs, with a part for each iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from loopscope.debug.run import Run
from loopscope.executor.plan.plan import CallRegion, IfRegion, LoopRegion, Program
from loopscope.peers.fingerprint import Fingerprint
from loopscope.peers.inlined_functions import Names, inline
from loopscope.peers.probes import Probe, owner, times, varies

_MOST_IN_ONE_FILE = 2**30


def probed(run: Run, path: Path, probes: Sequence[Probe], prefix: str, target: Path) -> list[Probe]:
    """Writes the model of a run with an output more for each probe, named ``prefix`` and its
    number; gives the probes in that order.

    A probe under n loops gives an array with n axes more, one for the iterations of each, outermost
    first.
    """
    model = onnx.load(str(path))
    writing = _Writing(run, model)
    given = [probe for probe in probes if probe.program.index in writing.graphs]
    for number, probe in enumerate(given):
        writing.let_out(probe, f"{prefix}{number}")
    _save(model, target)
    return given


def with_attribute(path: Path, name: str, value: int, target: Path) -> Path:
    """Writes a model in which the attribute of that name has that value in all nodes that have
    it; gives the file.
    """
    model = onnx.load(str(path))
    waiting: list[Any] = [model.graph, *model.functions]
    while waiting:
        for attribute in (one for node in waiting.pop().node for one in node.attribute):
            waiting += [attribute.g, *attribute.graphs]
            if attribute.name == name:
                attribute.i = value
    _save(model, target)
    return target


def _save(model: onnx.ModelProto, target: Path) -> None:
    onnx.save(
        model,
        str(target),
        save_as_external_data=model.ByteSize() > _MOST_IN_ONE_FILE,
        all_tensors_to_one_file=True,
    )


class _Writing:
    def __init__(self, run: Run, model: onnx.ModelProto) -> None:
        self.run = run
        self.graphs = {0: model.graph}
        """By the number of a program; that of a function is the graph of its call, in place of
        which its nodes are.
        """
        self.names: dict[int, Names] = {0: Names()}
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

    def let_out(self, probe: Probe, name: str) -> None:
        """Hands one value out of its graph, and out of every loop and branch around."""
        program, shape = probe.program, probe.expected.shape[1:]
        value = self._name(probe)
        if probe.fingerprint is not None:
            value = _fingerprint(
                self.graphs[program.index], value, f"{name}/print", probe.fingerprint
            )
        kind = helper.np_dtype_to_tensor_dtype(probe.expected.dtype)
        while (around := program.parent) is not None:
            if isinstance(program.region, CallRegion):
                program = around
                continue
            out = f"{name}/{program.index}"
            self._give(program, value, out, kind)
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
                self._give(other, f"{out}/zeros", f"{out}/not", kind)
            elif isinstance(region, LoopRegion):
                shape = (times(self.run, region), *shape)
            value = f"{out}/all"
            _take_out(self._node(program), value)
            if isinstance(region, LoopRegion) and varies(self.run, region):
                value = _padded(
                    self.graphs[around.index], value, np.zeros(shape, probe.expected.dtype)
                )
            program = around
        self._give(program, value, name, kind)

    def _give(self, program: Program, value: str, name: str, kind: int) -> None:
        graph = self.graphs[program.index]
        graph.node.append(helper.make_node("Identity", [value], [name]))
        graph.output.append(helper.make_tensor_value_info(name, kind, None))

    def _name(self, probe: Probe) -> str:
        """What a value is called in its graph: the output of a node, or a body's input."""
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
        """The node that a graph belongs to, which is known by the name of what it gives."""
        assert program.parent is not None
        own = next(
            port.names[0]
            for port in program.parent.instructions[program.owner].node.outputs
            if port.names
        )
        name = self.names[program.parent.index].of(own)
        found: onnx.NodeProto = next(
            node for node in self.graphs[program.parent.index].node if name in node.output
        )
        return found

    def _body(self, program: Program) -> onnx.GraphProto:
        region = owner(program)
        name = "body"
        if isinstance(region, IfRegion):
            name = "then_branch" if program is region.then.program else "else_branch"
        found: onnx.GraphProto = next(
            attribute.g for attribute in self._node(program).attribute if attribute.name == name
        )
        return found


def _padded(graph: onnx.GraphProto, value: str, zeros: np.ndarray) -> str:
    """Add nodes that give the parts of a value, then zeros, as many as ``zeros`` has; return the
    name of the result.
    """
    like = np.array([-1, *zeros.shape[1:]], np.int64)
    given = {
        "zeros": zeros,
        "shape": like,
        "begin": np.zeros(1, np.int64),
        "end": np.array(zeros.shape[:1], np.int64),
    }
    for name, array in given.items():
        graph.node.append(
            helper.make_node(
                "Constant", [], [f"{value}/{name}"], value=numpy_helper.from_array(array)
            )
        )
    parts = value
    if zeros.size:  # of a loop without iterations a runtime does not know the shape
        parts = f"{value}/shaped"
        graph.node.append(helper.make_node("Reshape", [value, f"{value}/shape"], [parts]))
    graph.node.append(
        helper.make_node("Concat", [parts, f"{value}/zeros"], [f"{value}/longer"], axis=0)
    )
    bounds = [f"{value}/begin", f"{value}/end"]
    graph.node.append(helper.make_node("Slice", [f"{value}/longer", *bounds], [f"{value}/padded"]))
    return f"{value}/padded"


def _fingerprint(graph: onnx.GraphProto, value: str, name: str, of: Fingerprint) -> str:
    """Nodes that compute what ``Fingerprint.of`` does; gives the name of what they make."""

    def made(type: str, inputs: Sequence[str], **attributes: Any) -> str:
        graph.node.append(
            helper.make_node(type, inputs, [f"{name}/{len(graph.node)}"], **attributes)
        )
        return str(graph.node[-1].output[0])

    def constant(array: np.ndarray) -> str:
        return made("Constant", [], value=numpy_helper.from_array(array))

    def shaped(one: str, *shape: int) -> str:
        return made("Reshape", [one, constant(np.array(shape, np.int64))])

    buckets = shaped(made("Cast", [value], to=onnx.TensorProto.FLOAT), *of.shape)
    largest = made("ReduceMax", [made("Abs", [buckets])], keepdims=0)
    length = made("Sqrt", [made("ReduceSumSquare", [buckets], keepdims=0)])
    products = made("MatMul", [buckets, constant(of.signs)])
    return made("Concat", [shaped(one, -1) for one in (largest, length, products)], axis=0)


def _take_out(node: onnx.NodeProto, name: str) -> None:
    """Gives a loop a scan output more, or an If an output."""
    node.output.append(name)
    for attribute in node.attribute:
        if attribute.name in ("scan_output_axes", "scan_output_directions"):
            attribute.ints.append(0)
