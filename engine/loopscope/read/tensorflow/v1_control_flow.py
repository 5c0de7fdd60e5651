"""The control flow of TensorFlow 1 as that of TensorFlow 2: frames become While, Switch and
Merge become If, with functions as bodies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loopscope.ir.graph_messages import MESSAGES

FRAME_OPERATIONS = frozenset({"Enter", "Exit", "NextIteration", "LoopCond"})
_MOST_WORK = 50_000_000
"""Each Switch, Merge and frame may look at every node."""
_BOOL = 10
_V1 = FRAME_OPERATIONS | {"Switch", "Merge"}
_ARGUMENT = "_Arg"
"""Stands in a function's graph for each of its arguments."""
Tensor = tuple[str, int | str]
"""A node's name and the number of its output; in a function, where outputs have names, such as
``y:0``.
"""


class MalformedControlFlow(Exception):
    """A frame or a branch is not as TensorFlow 1 builds it."""


def with_functions(graph: Any) -> Any | None:
    """The GraphDef without any Switch, Merge or frame, in its functions too; None when it has none,
    or one that is not well formed.

    So nothing is half done. Nodes that nothing outside a frame or a branch depends on are left out,
    and so are control inputs inside.
    """
    main = _Graph({node.name: node for node in graph.node})
    functions = [(function, _of_function(function)) for function in graph.library.function]
    folding = [work for work in (main, *(work for _, work in functions)) if work.to_fold()]
    if not folding or sum(work.to_fold() * len(work.nodes) for work in folding) > _MOST_WORK:
        return None
    if not all(work.fold() for work in folding):
        return None
    made = MESSAGES["GraphDef"]()
    made.CopyFrom(graph)
    _put_nodes(made.node, main)
    for function, (_, work) in zip(made.library.function, functions, strict=True):
        _put_nodes(function.node_def, work)
    made.library.function.extend(one for work in folding for one in work.functions)
    return made


def _of_function(function: Any) -> _Graph:
    """The nodes of a function, and one for each of its arguments."""
    name, arguments = function.signature.name, [one.name for one in function.signature.input_arg]
    nodes = {one: MESSAGES["NodeDef"](name=one, op=_ARGUMENT) for one in arguments}
    ends = tuple(_tensor(text)[0] for text in function.ret.values())
    return _Graph({**nodes, **{node.name: node for node in function.node_def}}, f"{name}/", ends)


def _put_nodes(target: Any, work: _Graph) -> None:
    """What is left of a graph that was folded in the place of its nodes; one without anything to
    fold stays.
    """
    if work.kept:
        del target[:]
        for name in work.nodes:
            if name in work.kept and work.nodes[name].op != _ARGUMENT:
                node = target.add()
                node.CopyFrom(work.nodes[name])
                del node.input[:]
                node.input.extend(
                    text
                    for text in work.nodes[name].input
                    if text.removeprefix("^").partition(":")[0] in work.kept
                )


def _tensors(node: Any) -> tuple[Tensor, ...]:
    return tuple(_tensor(text) for text in node.input if not text.startswith("^"))


def _tensor(text: str) -> Tensor:
    """As a graph or a function refers to a node's output.

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
    """Merges of one condition: what each gives when it is false and when it is true."""

    condition: Tensor
    merges: list[Any] = field(default_factory=list[Any])
    values: tuple[list[Tensor], list[Tensor]] = field(default_factory=lambda: ([], []))
    inside: set[str] = field(default_factory=set[str])


@dataclass(slots=True)
class _Graph:
    """Nodes by name, of which frames and branches are folded into functions, the innermost
    first.
    """

    nodes: dict[str, Any]
    prefix: str = ""
    """Of the names of functions that are made."""
    results: tuple[str, ...] = ()
    """The nodes that a function gives; empty: those whose outputs nobody takes."""
    functions: list[Any] = field(default_factory=list[Any])
    kept: set[str] = field(default_factory=set[str])
    """What is left when all is folded."""
    taken: set[str] = field(default_factory=set[str])
    """Names of loops and branches that were made."""

    def to_fold(self) -> int:
        """How many nodes of TensorFlow 1's control flow there are."""
        return sum(node.op in _V1 for node in self.nodes.values())

    def fold(self) -> bool:
        """Whether all could be folded: ``kept`` and ``functions`` say what it has become."""
        ends = self.results or self._ends()
        try:
            while self.fold_frame() or self.fold_branches():
                pass
        except (
            MalformedControlFlow,
            KeyError,
            IndexError,
            ValueError,
        ):  # a node that is not there, or has too few inputs
            return False
        self.kept = self.outside(ends)
        return bool(self.kept) and not any(self.nodes[name].op in _V1 for name in self.kept)

    def _ends(self) -> tuple[str, ...]:
        """The nodes whose outputs nobody takes."""
        taken = {
            text.lstrip("^").partition(":")[0]
            for node in self.nodes.values()
            for text in node.input
        }
        return tuple(name for name in self.nodes if name not in taken)

    def outside(self, ends: Iterable[str]) -> set[str]:
        """What the ends depend on, but for those that lie in what was folded, where a Switch or
        an Enter is behind them.
        """
        kept: set[str] = set()
        for end in ends:
            try:
                cone = self._cone([(end, 0)], frozenset())
            except MalformedControlFlow:  # what it depends on is in a function now
                continue
            if not any(self.nodes[name].op in _V1 for name in cone):
                kept |= cone
        return kept

    def _cone(self, tensors: Iterable[Tensor], stop: frozenset[str] | set[str]) -> set[str]:
        """The nodes that tensors depend on; those of ``stop`` are neither in it nor looked
        behind.
        """
        found: set[str] = set()
        waiting = [name for name, _ in tensors]
        while waiting:
            name = waiting.pop()
            if name in found or name in stop:
                continue
            if name not in self.nodes:
                raise MalformedControlFlow(name)
            found.add(name)
            waiting.extend(name for name, _ in _tensors(self.nodes[name]))
        return found

    def _of(self, *kinds: str) -> list[Any]:
        return [node for node in self.nodes.values() if node.op in kinds]

    # Frames

    def fold_frame(self) -> bool:
        """Whether a frame without frames and branches inside was there, and is a While now."""
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
            if _tensors(node)[0][0] in {one.name for one in merges.values()}
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
        goes_on, results = _tensors(self.nodes[condition])[0], [_tensors(node)[0] for node in nexts]
        inside = self._cone([goes_on, *results], set(arguments))
        if any(self.nodes[name].op in _V1 for name in inside):
            return False
        self._add_while(
            frame,
            [*states, *(node for node in enters if node not in states)],
            arguments,
            goes_on,
            results,
        )
        exits = {switches[merges[node.name].name].name: at for at, node in enumerate(states)}
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
        goes_on: Tensor,
        results: Sequence[Tensor],
    ) -> None:
        name, types = _while_name(frame), [node.attr["T"].type for node in enters]
        given = [node.name for node in enters]
        whole = [*results, *((one, 0) for one in given[len(results) :])]
        parameters = list(zip(given, types, strict=True))
        cond, body = f"{self.prefix}{name}/cond", f"{self.prefix}{name}/body"
        self._add_function(cond, parameters, arguments, [(goes_on, _BOOL)])
        self._add_function(body, parameters, arguments, list(zip(whole, types, strict=True)))
        made = self._add_node(name, "StatelessWhile", [_tensors(node)[0] for node in enters])
        made.attr["cond"].func.name, made.attr["body"].func.name = cond, body
        made.attr["T"].list.type.extend(types)

    # Branches

    def fold_branches(self) -> bool:
        """Whether a condition without branches and frames inside was there, and is an If now."""
        found: dict[tuple[Tensor, str], _Branches] = {}
        for merge in self._of("Merge"):
            sides = _tensors(merge)
            if len(sides) != 2 or any(self.nodes[name].op == "NextIteration" for name, _ in sides):
                continue
            read = self._branches(merge, sides)
            if read is not None:
                condition, values, inside = read
                group = found.setdefault((condition, _scope(merge.name)), _Branches(condition))
                group.merges.append(merge)
                group.inside |= inside
                for side, value in zip(group.values, values, strict=True):
                    side.append(value)
        for group in found.values():
            self._add_if(group)
        return bool(found)

    def _branches(
        self, merge: Any, sides: Sequence[Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor], set[str]] | None:
        """Condition, values when false and true, and the nodes of both; None while something
        inside is not folded.
        """
        loops = {node.name for node in self._of("LoopCond")}
        stops = {node.name for node in self._of("Switch") if _tensors(node)[1][0] not in loops}
        at: list[int | str | None] = [None, None]
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
            read = {
                tensor
                for name in cone
                for tensor in _tensors(self.nodes[name])
                if tensor[0] in stops
            } | ({side} if side[0] in stops else set())
            conditions |= {_tensors(self.nodes[name])[1] for name, _ in read}
            outputs = {output for _, output in read}
            if len(outputs) > 1:
                raise MalformedControlFlow(merge.name)
            at[number] = next(iter(outputs), None)
        if len(conditions) != 1 or {at[0], at[1]} not in ({0, 1}, {0, None}, {1, None}):
            raise MalformedControlFlow(merge.name)
        first_is_false = at[0] == 0 or at[1] == 1
        return (
            conditions.pop(),
            (sides[0], sides[1]) if first_is_false else (sides[1], sides[0]),
            inside,
        )

    def _add_if(self, group: _Branches) -> None:
        read = {name for node in group.inside for name, _ in _tensors(self.nodes[node])} | {
            name for side in group.values for name, _ in side
        }
        switches = [self.nodes[name] for name in sorted(read) if self.nodes[name].op == "Switch"]
        parameters = [(node.name, node.attr["T"].type) for node in switches]
        arguments = {node.name: node.name for node in switches}
        name = self._free_name(_scope(group.merges[0].name) or group.merges[0].name)
        types = [node.attr["T"].type for node in group.merges]
        made_of = {"else_branch": group.values[0], "then_branch": group.values[1]}
        made = self._add_node(
            name, "StatelessIf", [group.condition, *(_tensors(node)[0] for node in switches)]
        )
        for branch, values in made_of.items():
            function = f"{self.prefix}{name}/{branch}"
            self._add_function(
                function, parameters, arguments, list(zip(values, types, strict=True))
            )
            made.attr[branch].func.name = function
        made.attr["Tcond"].type = _BOOL
        made.attr["Tin"].list.type.extend(node.attr["T"].type for node in switches)
        made.attr["Tout"].list.type.extend(types)
        for at, merge in enumerate(group.merges):
            self._replace(merge, name, at)

    # What both make

    def _free_name(self, wanted: str) -> str:
        name, number = wanted, 0
        while name in self.nodes or name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def _add_node(self, name: str, kind: str, inputs: Iterable[Tensor]) -> Any:
        if name in self.nodes or name in self.taken:
            raise MalformedControlFlow(name)
        self.taken.add(name)
        made = self.nodes[name] = MESSAGES["NodeDef"](
            name=name, op=kind, input=map(self._text, inputs)
        )
        return made

    def _text(self, tensor: Tensor) -> str:
        """As a node refers to it; to an argument by its name alone."""
        name, output = tensor
        return (
            name if name in self.nodes and self.nodes[name].op == _ARGUMENT else f"{name}:{output}"
        )

    def _replace(self, node: Any, source: str, output: int) -> None:
        """The node hands on an output of another one from now on, under its own name."""
        made = self.nodes[node.name] = MESSAGES["NodeDef"](
            name=node.name, op="Identity", input=[f"{source}:{output}"]
        )
        made.attr["T"].type = node.attr["T"].type

    def _add_function(
        self,
        name: str,
        parameters: Sequence[tuple[str, int]],
        arguments: Mapping[str, str],
        results: Sequence[tuple[Tensor, int]],
    ) -> None:
        """A function of the nodes between parameters and results; ``arguments``: the parameter
        for each node that stands for one.
        """
        made = MESSAGES["FunctionDef"]()
        made.signature.name = name
        for parameter, kind in parameters:
            made.signature.input_arg.add(name=parameter, type=kind)

        def inner(tensor: Tensor) -> str:
            return arguments[tensor[0]] if tensor[0] in arguments else f"{tensor[0]}:{tensor[1]}"

        inside = self._cone([tensor for tensor, _ in results], set(arguments))
        for node in self.nodes.values():
            if node.name in inside:
                copy = made.node_def.add()
                copy.CopyFrom(node)
                del copy.input[:]
                copy.input.extend(inner(tensor) for tensor in _tensors(node))
        for at, (tensor, kind) in enumerate(results):
            made.signature.output_arg.add(name=f"result_{at}", type=kind)
            made.ret[f"result_{at}"] = inner(tensor)
        self.functions.append(made)


def _while_name(frame: str) -> str:
    """``outer/while/while_context`` is the frame of the loop ``outer/while``."""
    return frame.removesuffix("/while_context") or "while"
