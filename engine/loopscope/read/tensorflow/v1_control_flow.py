"""TensorFlow 1 control flow as TensorFlow 2: frames become While, Switch and Merge become If.

Their bodies become functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loopscope.ir.graph_messages import MESSAGES

FRAME_OPERATIONS = frozenset({"Enter", "Exit", "NextIteration", "LoopCond"})
_MAX_WORK = 50_000_000
"""Limit on control-flow nodes times all nodes, because each Switch, Merge and frame may visit every
node.
"""
_BOOL = 10
_V1 = FRAME_OPERATIONS | {"Switch", "Merge"}
_ARGUMENT = "_Arg"
"""Operation type of the nodes that represent a function's arguments."""
Tensor = tuple[str, int | str]
"""A node's name and output number; in a function, named outputs are texts such as ``y:0``."""


class MalformedControlFlow(Exception):
    """A frame or branch with a structure that TensorFlow 1 does not build."""


def with_functions(graph: Any) -> Any | None:
    """Return the GraphDef with all frames, Switches and Merges replaced, in its functions too.

    None if there are none, or one of them is malformed; partial results are not returned. Nodes
    that only frames or branches need, and control inputs inside them, are left out.
    """
    main = _Graph({node.name: node for node in graph.node})
    functions = [(function, _function_graph(function)) for function in graph.library.function]
    folding = [work for work in (main, *(work for _, work in functions)) if work.to_fold()]
    if not folding or sum(work.to_fold() * len(work.nodes) for work in folding) > _MAX_WORK:
        return None
    if not all(work.fold() for work in folding):
        return None
    folded = MESSAGES["GraphDef"]()
    folded.CopyFrom(graph)
    _replace_nodes(folded.node, main)
    for function, (_, work) in zip(folded.library.function, functions, strict=True):
        _replace_nodes(function.node_def, work)
    folded.library.function.extend(
        function_def for work in folding for function_def in work.functions
    )
    return folded


def _function_graph(function: Any) -> _Graph:
    """Return the nodes of a function as a graph, with a node for each argument."""
    name = function.signature.name
    arguments = [argument.name for argument in function.signature.input_arg]
    nodes = {argument: MESSAGES["NodeDef"](name=argument, op=_ARGUMENT) for argument in arguments}
    ends = tuple(_tensor(text)[0] for text in function.ret.values())
    return _Graph({**nodes, **{node.name: node for node in function.node_def}}, f"{name}/", ends)


def _replace_nodes(target: Any, work: _Graph) -> None:
    """Replace the nodes of a message by those of a folded graph; other graphs stay unchanged."""
    if work.remaining:
        del target[:]
        for name in work.nodes:
            if name in work.remaining and work.nodes[name].op != _ARGUMENT:
                node = target.add()
                node.CopyFrom(work.nodes[name])
                del node.input[:]
                node.input.extend(
                    text
                    for text in work.nodes[name].input
                    if text.removeprefix("^").partition(":")[0] in work.remaining
                )


def _tensors(node: Any) -> tuple[Tensor, ...]:
    return tuple(_tensor(text) for text in node.input if not text.startswith("^"))


def _tensor(text: str) -> Tensor:
    """Parse a reference to a node's output in a graph or a function.

    >>> _tensor("x"), _tensor("x:1"), _tensor("switch:output_true:0"), _tensor("top:values:0")
    (('x', 0), ('x', 1), ('switch', 1), ('top', 'values:0'))
    """
    name, _, output = text.partition(":")
    match output.split(":"):
        case [number] if number.isdecimal():
            return name, int(number)
        case ["output_false" | "output_true" as side, "0"]:
            return name, int(side == "output_true")
        case _:
            return name, output or 0


def _scope(name: str) -> str:
    return name.rpartition("/")[0]


@dataclass(slots=True)
class _Branches:
    """Merges with a common condition: the input of each for false and for true."""

    condition: Tensor
    merges: list[Any] = field(default_factory=list[Any])
    values: tuple[list[Tensor], list[Tensor]] = field(default_factory=lambda: ([], []))
    inside: set[str] = field(default_factory=set[str])


@dataclass(slots=True)
class _Graph:
    """Nodes by name. Frames and branches are folded into functions, innermost first."""

    nodes: dict[str, Any]
    prefix: str = ""
    """Prefix of the names of new functions."""
    results: tuple[str, ...] = ()
    """Output nodes of a function; empty for the main graph, whose outputs are nodes without
    consumers.
    """
    functions: list[Any] = field(default_factory=list[Any])
    remaining: set[str] = field(default_factory=set[str])
    """Names of the nodes that remain after folding."""
    new_names: set[str] = field(default_factory=set[str])
    """Names of new loops and branches."""

    def to_fold(self) -> int:
        """Return the number of TensorFlow 1 control-flow nodes."""
        return sum(node.op in _V1 for node in self.nodes.values())

    def fold(self) -> bool:
        """Fold all frames and branches. Return True on success.

        The result is in ``remaining`` and ``functions``.
        """
        ends = self.results or self._ends()
        try:
            while self.fold_frame() or self.fold_branches():
                pass
        # KeyError, IndexError: a node is missing or has too few inputs.
        except (MalformedControlFlow, KeyError, IndexError, ValueError):
            return False
        self.remaining = self.outside(ends)
        return bool(self.remaining) and not any(
            self.nodes[name].op in _V1 for name in self.remaining
        )

    def _ends(self) -> tuple[str, ...]:
        """Return the nodes without consumers."""
        consumed = {
            text.lstrip("^").partition(":")[0]
            for node in self.nodes.values()
            for text in node.input
        }
        return tuple(name for name in self.nodes if name not in consumed)

    def outside(self, ends: Iterable[str]) -> set[str]:
        """Return the nodes that the ends depend on. Ends behind a remaining Switch or Enter are
        skipped.
        """
        reached: set[str] = set()
        for end in ends:
            try:
                cone = self._cone([(end, 0)], frozenset())
            except MalformedControlFlow:  # its inputs are in a function now
                continue
            if not any(self.nodes[name].op in _V1 for name in cone):
                reached |= cone
        return reached

    def _cone(self, tensors: Iterable[Tensor], stop: frozenset[str] | set[str]) -> set[str]:
        """Return the nodes that tensors depend on, without the nodes in ``stop`` and their
        inputs.
        """
        reached: set[str] = set()
        waiting = [name for name, _ in tensors]
        while waiting:
            name = waiting.pop()
            if name in reached or name in stop:
                continue
            if name not in self.nodes:
                raise MalformedControlFlow(name)
            reached.add(name)
            waiting.extend(name for name, _ in _tensors(self.nodes[name]))
        return reached

    def _of(self, *kinds: str) -> list[Any]:
        return [node for node in self.nodes.values() if node.op in kinds]

    # Frames

    def fold_frame(self) -> bool:
        """Fold a frame without frames and branches inside into a While. Return True if there was
        one.
        """
        frames: dict[bytes, list[Any]] = {}
        for node in self._of("Enter"):
            frames.setdefault(node.attr["frame_name"].s, []).append(node)
        return any(
            self._fold(name.decode("utf-8", errors="replace"), enters)
            for name, enters in frames.items()
        )

    def _fold(self, frame: str, enters: Sequence[Any]) -> bool:
        entered = {node.name for node in enters}
        merges = {
            source[0]: node
            for node in self._of("Merge")
            for source in _tensors(node)[:1]
            if source[0] in entered
        }
        states = [node for node in enters if node.name in merges]
        nexts = [self.nodes[_tensors(merges[node.name])[1][0]] for node in states]
        switches = {
            _tensors(node)[0][0]: node
            for node in self._of("Switch")
            if _tensors(node)[0][0] in {merge_node.name for merge_node in merges.values()}
        }
        if (
            not states
            or len(switches) != len(states)
            or any(node.op != "NextIteration" for node in nexts)
        ):
            raise MalformedControlFlow(frame)
        (condition,) = {_tensors(node)[1][0] for node in switches.values()}
        arguments = {node.name: node.name for node in enters}
        for node in states:
            merge = merges[node.name]
            arguments[merge.name] = arguments[switches[merge.name].name] = node.name
        continues = _tensors(self.nodes[condition])[0]
        results = [_tensors(node)[0] for node in nexts]
        inside = self._cone([continues, *results], set(arguments))
        if any(self.nodes[name].op in _V1 for name in inside):
            return False
        self._add_while(
            frame,
            [*states, *(node for node in enters if node not in states)],
            arguments,
            continues,
            results,
        )
        exits = {switches[merges[node.name].name].name: index for index, node in enumerate(states)}
        for node in self._of("Exit"):
            if (source := _tensors(node)[0][0]) in exits:
                self._replace(node, _while_name(frame), exits[source])
        for node in (*enters, *merges.values(), *switches.values(), *nexts, self.nodes[condition]):
            self.nodes.pop(node.name, None)
        return True

    def _add_while(
        self,
        frame: str,
        enters: Sequence[Any],
        arguments: Mapping[str, str],
        continues: Tensor,
        results: Sequence[Tensor],
    ) -> None:
        name, types = _while_name(frame), [node.attr["T"].type for node in enters]
        names_of_inputs = [node.name for node in enters]
        body_results = [
            *results,
            *((input_name, 0) for input_name in names_of_inputs[len(results) :]),
        ]
        parameters = list(zip(names_of_inputs, types, strict=True))
        cond, body = f"{self.prefix}{name}/cond", f"{self.prefix}{name}/body"
        self._add_function(cond, parameters, arguments, [(continues, _BOOL)])
        self._add_function(body, parameters, arguments, list(zip(body_results, types, strict=True)))
        node_def = self._add_node(name, "StatelessWhile", [_tensors(node)[0] for node in enters])
        node_def.attr["cond"].func.name, node_def.attr["body"].func.name = cond, body
        node_def.attr["T"].list.type.extend(types)

    # Branches

    def fold_branches(self) -> bool:
        """Fold the conditions without branches and frames inside into Ifs. Return True if there was
        one.
        """
        groups: dict[tuple[Tensor, str], _Branches] = {}
        for merge in self._of("Merge"):
            sides = _tensors(merge)
            if len(sides) != 2 or any(self.nodes[name].op == "NextIteration" for name, _ in sides):
                continue
            branches = self._branches(merge, sides)
            if branches is not None:
                condition, values, inside = branches
                group = groups.setdefault((condition, _scope(merge.name)), _Branches(condition))
                group.merges.append(merge)
                group.inside |= inside
                for side, value in zip(group.values, values, strict=True):
                    side.append(value)
        for group in groups.values():
            self._add_if(group)
        return bool(groups)

    def _branches(
        self, merge: Any, sides: Sequence[Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor], set[str]] | None:
        """Return condition, values for false and true, and the nodes of both branches.

        None while inner control flow is not folded.
        """
        loops = {node.name for node in self._of("LoopCond")}
        stops = {node.name for node in self._of("Switch") if _tensors(node)[1][0] not in loops}
        side_outputs: list[int | str | None] = [None, None]
        conditions: set[Tensor] = set()
        inside: set[str] = set()
        for number, side in enumerate(sides):
            cone = self._cone([side], stops)
            if any(
                self.nodes[name].op in _V1 or self.nodes[name].op in ("Placeholder", _ARGUMENT)
                for name in cone
            ):
                return None
            inside |= cone
            switch_outputs = {
                tensor
                for name in cone
                for tensor in _tensors(self.nodes[name])
                if tensor[0] in stops
            } | ({side} if side[0] in stops else set())
            conditions |= {_tensors(self.nodes[name])[1] for name, _ in switch_outputs}
            outputs = {output for _, output in switch_outputs}
            if len(outputs) > 1:
                raise MalformedControlFlow(merge.name)
            side_outputs[number] = next(iter(outputs), None)
        if len(conditions) != 1 or {side_outputs[0], side_outputs[1]} not in (
            {0, 1},
            {0, None},
            {1, None},
        ):
            raise MalformedControlFlow(merge.name)
        first_is_false = side_outputs[0] == 0 or side_outputs[1] == 1
        return (
            conditions.pop(),
            (sides[0], sides[1]) if first_is_false else (sides[1], sides[0]),
            inside,
        )

    def _add_if(self, group: _Branches) -> None:
        inputs = {name for node in group.inside for name, _ in _tensors(self.nodes[node])} | {
            name for side in group.values for name, _ in side
        }
        switches = [self.nodes[name] for name in sorted(inputs) if self.nodes[name].op == "Switch"]
        parameters = [(node.name, node.attr["T"].type) for node in switches]
        arguments = {node.name: node.name for node in switches}
        name = self._free_name(_scope(group.merges[0].name) or group.merges[0].name)
        types = [node.attr["T"].type for node in group.merges]
        branch_values = {"else_branch": group.values[0], "then_branch": group.values[1]}
        node_def = self._add_node(
            name, "StatelessIf", [group.condition, *(_tensors(node)[0] for node in switches)]
        )
        for branch, values in branch_values.items():
            function = f"{self.prefix}{name}/{branch}"
            self._add_function(
                function, parameters, arguments, list(zip(values, types, strict=True))
            )
            node_def.attr[branch].func.name = function
        node_def.attr["Tcond"].type = _BOOL
        node_def.attr["Tin"].list.type.extend(node.attr["T"].type for node in switches)
        node_def.attr["Tout"].list.type.extend(types)
        for index, merge in enumerate(group.merges):
            self._replace(merge, name, index)

    # Nodes and functions

    def _free_name(self, preferred: str) -> str:
        name, number = preferred, 0
        while name in self.nodes or name in self.new_names:
            number += 1
            name = f"{preferred}_{number}"
        return name

    def _add_node(self, name: str, kind: str, inputs: Iterable[Tensor]) -> Any:
        if name in self.nodes or name in self.new_names:
            raise MalformedControlFlow(name)
        self.new_names.add(name)
        node_def = self.nodes[name] = MESSAGES["NodeDef"](
            name=name, op=kind, input=map(self._text, inputs)
        )
        return node_def

    def _text(self, tensor: Tensor) -> str:
        """Format a reference to a tensor; an argument is referenced by its name alone."""
        name, output = tensor
        return (
            name if name in self.nodes and self.nodes[name].op == _ARGUMENT else f"{name}:{output}"
        )

    def _replace(self, node: Any, source: str, output: int) -> None:
        """Replace a node by an Identity of another node's output."""
        identity = self.nodes[node.name] = MESSAGES["NodeDef"](
            name=node.name, op="Identity", input=[f"{source}:{output}"]
        )
        identity.attr["T"].type = node.attr["T"].type

    def _add_function(
        self,
        name: str,
        parameters: Sequence[tuple[str, int]],
        arguments: Mapping[str, str],
        results: Sequence[tuple[Tensor, int]],
    ) -> None:
        """Add a function of the nodes between parameters and results.

        ``arguments`` maps each node that represents a parameter to the parameter's name.
        """
        function_def = MESSAGES["FunctionDef"]()
        function_def.signature.name = name
        for parameter, kind in parameters:
            function_def.signature.input_arg.add(name=parameter, type=kind)

        def inner(tensor: Tensor) -> str:
            return arguments[tensor[0]] if tensor[0] in arguments else f"{tensor[0]}:{tensor[1]}"

        inside = self._cone([tensor for tensor, _ in results], set(arguments))
        for node in self.nodes.values():
            if node.name in inside:
                copy = function_def.node_def.add()
                copy.CopyFrom(node)
                del copy.input[:]
                copy.input.extend(inner(tensor) for tensor in _tensors(node))
        for index, (tensor, kind) in enumerate(results):
            function_def.signature.output_arg.add(name=f"result_{index}", type=kind)
            function_def.ret[f"result_{index}"] = inner(tensor)
        self.functions.append(function_def)


def _while_name(frame: str) -> str:
    """Return the loop's name: the frame ``outer/while/while_context`` belongs to
    ``outer/while``.
    """
    return frame.removesuffix("/while_context") or "while"
