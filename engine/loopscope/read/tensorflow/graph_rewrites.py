"""Rewrites of a TensorFlow graph before OpenVINO's frontend converts it.

Case, a branch of several, becomes nested Ifs. Nodes read a Print that only control inputs reach,
because OpenVINO drops it unless a later node reads its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loopscope.ir.graph_messages import MESSAGES
from loopscope.read.tensorflow.graph_file import node_name

_IFS = {"Case": "If", "StatelessCase": "StatelessIf"}
"""Operation of the If by that of the Case: its branches have side effects or not."""
_MAX_COPIED_NODES = 1_000_000
_INT32, _BOOL = 3, 10


def with_ifs(graph: Any) -> Any | None:
    """Return the GraphDef with every Case replaced by Ifs, in its functions too.

    The outermost If has the name of the Case, so that its consumers stay unchanged. An If tests
    whether the index is the number of its branch, and its other branch is the If of the next
    number. An index without a branch takes the last one. None if the graph does not have a Case, a
    Case is malformed, or the copies of the branches would be too large.
    """
    node_lists = [graph.node, *(function.node_def for function in graph.library.function)]
    if not any(node.op in _IFS for nodes in node_lists for node in nodes):
        return None
    changed = MESSAGES["GraphDef"]()
    changed.CopyFrom(graph)
    library = {function.signature.name: function for function in changed.library.function}
    work = _Replacement(library)
    in_main = _replace_cases(work, "", changed.node)
    if not in_main or not all(
        _replace_cases(work, f"{name}/", function.node_def) for name, function in library.items()
    ):
        return None
    if sum(len(library[source].node_def) for source in work.copies.values()) > _MAX_COPIED_NODES:
        return None
    copies = [_with_index(library[source], name) for name, source in work.copies.items()]
    changed.library.function.extend([*work.functions, *copies])
    return changed


@dataclass(slots=True)
class _Replacement:
    """Functions for the branches of all Ifs."""

    library: Mapping[str, Any]
    """Functions of the file by name."""
    functions: list[Any] = field(default_factory=list[Any])
    copies: dict[str, str] = field(default_factory=dict[str, str])
    """Name of a function by the name of its copy, which takes the index as its first argument."""

    def branch(self, case: Any, prefix: str, number: int) -> str:
        """Return the name of the copy of a branch."""
        name = f"{prefix}{case.name}/branch_{number}"
        self.copies[name] = case.attr["branches"].list.func[number].name
        return name

    def others(self, case: Any, prefix: str, number: int) -> str:
        """Return the name of the function for the branches from ``number`` on."""
        if number >= len(case.attr["branches"].list.func) - 1:
            return self.branch(case, prefix, len(case.attr["branches"].list.func) - 1)
        function = MESSAGES["FunctionDef"]()
        function.signature.name = f"{prefix}{case.name}/branches_from_{number}"
        function.signature.input_arg.add(name="branch_index", type=_INT32)
        kinds = case.attr["Tin"].list.type
        names = [f"input_{position}" for position in range(len(kinds))]
        for name, kind in zip(names, kinds, strict=True):
            function.signature.input_arg.add(name=name, type=kind)
        test = f"{case.name}/branch_{number}"
        inputs = ["branch_index", *names]
        function.node_def.extend(self.test(case, prefix, number, test, inputs, ":z:0"))
        for position, kind in enumerate(case.attr["Tout"].list.type):
            function.signature.output_arg.add(name=f"output_{position}", type=kind)
            function.ret[f"output_{position}"] = f"{test}:output:{position}"
        self.functions.append(function)
        return str(function.signature.name)

    def test(
        self, case: Any, prefix: str, number: int, name: str, inputs: list[str], suffix: str
    ) -> list[Any]:
        """Return the nodes of one If: the number of its branch, the comparison, the If.

        ``suffix`` is what a reference to the output of the comparison ends with.
        """
        constant = MESSAGES["NodeDef"](name=f"{name}/number", op="Const")
        constant.attr["dtype"].type = _INT32
        constant.attr["value"].tensor.dtype = _INT32
        constant.attr["value"].tensor.tensor_shape.SetInParent()
        constant.attr["value"].tensor.int_val.append(number)
        reference = f"{constant.name}:output:0" if suffix else constant.name
        is_branch = MESSAGES["NodeDef"](
            name=f"{name}/is_branch_{number}", op="Equal", input=[inputs[0], reference]
        )
        is_branch.attr["T"].type = _INT32
        node = MESSAGES["NodeDef"](
            name=name, op=_IFS[case.op], input=[is_branch.name + suffix, *inputs]
        )
        node.attr["Tcond"].type = _BOOL
        node.attr["Tin"].list.type.extend([_INT32, *case.attr["Tin"].list.type])
        node.attr["Tout"].list.type.extend(case.attr["Tout"].list.type)
        node.attr["output_shapes"].list.CopyFrom(case.attr["output_shapes"].list)
        node.attr["then_branch"].func.name = self.branch(case, prefix, number)
        node.attr["else_branch"].func.name = self.others(case, prefix, number + 1)
        return [constant, is_branch, node]


def _replace_cases(work: _Replacement, prefix: str, nodes: Any) -> bool:
    """Replace every Case among the nodes of a graph; return False if one is malformed."""
    names = {node.name for node in nodes}
    for place, node in enumerate(list(nodes)):
        if node.op not in _IFS:
            continue
        branches = node.attr["branches"].list.func
        inputs = [text for text in node.input if not text.startswith("^")]
        if (
            not branches
            or len(inputs) != 1 + len(node.attr["Tin"].list.type)
            or any(branch.name not in work.library for branch in branches)
            or {f"{node.name}/number", f"{node.name}/is_branch_0"} & names
        ):
            return False
        case = MESSAGES["NodeDef"]()
        case.CopyFrom(node)
        suffix = ":z:0" if prefix else ""
        *added, test = work.test(case, prefix, 0, case.name, inputs, suffix)
        test.input.extend(text for text in case.input if text.startswith("^"))
        nodes[place].CopyFrom(test)
        nodes.extend(added)
    return True


def _with_index(function: Any, name: str) -> Any:
    """Return a copy of a function that takes the index as its first argument and ignores it."""
    copy = MESSAGES["FunctionDef"]()
    copy.CopyFrom(function)
    copy.signature.name = name
    used = {argument.name for argument in function.signature.input_arg}
    used |= {node.name for node in function.node_def}
    index = "branch_index"
    while index in used:
        index += "_"
    del copy.signature.input_arg[:]
    copy.signature.input_arg.add(name=index, type=_INT32)
    copy.signature.input_arg.extend(function.signature.input_arg)
    copy.DiscardUnknownFields()  # among them attributes by the number of an argument
    return copy


def with_read_prints(graph: Any) -> Any | None:
    """Return the graph with readers of a printed tensor rewired to the Print's output, an equal
    value.

    Only nodes after the Print are rewired. None if no Print is reached by control inputs alone, or
    no node after such a Print reads the tensor that it prints.
    """
    rewired = MESSAGES["GraphDef"]()
    rewired.CopyFrom(graph)
    read_names = {
        node_name(text) for node in rewired.node for text in node.input if not text.startswith("^")
    }
    prints = {
        node.name: node
        for node in rewired.node
        if node.op == "Print" and node.name not in read_names and node.input
    }
    is_changed = False
    for name, node in prints.items():
        dependents = _dependents(rewired, name)
        for other in rewired.node:
            places = [
                place
                for place, text in enumerate(other.input)
                if _without_port_zero(text) == _without_port_zero(node.input[0])
            ]
            if other.name in dependents and other.op != "Print":
                for place in places:
                    other.input[place] = name
                    is_changed = True
    return rewired if is_changed else None


def _dependents(graph: Any, name: str) -> set[str]:
    """Return the nodes that depend on a node, by data or control."""
    consumers: dict[str, list[str]] = {}
    for node in graph.node:
        for text in node.input:
            consumers.setdefault(node_name(text), []).append(node.name)
    dependents: set[str] = set()
    waiting = list(consumers.get(name, ()))
    while waiting:
        dependent = waiting.pop()
        if dependent not in dependents:
            dependents.add(dependent)
            waiting += consumers.get(dependent, ())
    return dependents


def _without_port_zero(text: str) -> str:
    return text.removesuffix(":0")
