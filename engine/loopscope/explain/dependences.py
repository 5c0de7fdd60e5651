"""Dependence graph of one execution of a loop: every operation of every iteration, and the
operations it waits for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from loopscope.debug.lookup import value_names
from loopscope.debug.run import Run
from loopscope.errors import AddressError, ValueUnavailable
from loopscope.executor.plan.body_ports import (
    CarriedValue,
    Concatenated,
    Counter,
    Invariant,
    Sliced,
    Unfed,
)
from loopscope.executor.plan.plan import CallRegion, IfRegion, Instruction, LoopRegion, Program
from loopscope.executor.plan.slots import Slot
from loopscope.ir.address import Address
from loopscope.ir.rt_info import window_of

Node = int
"""Node number, greater than the numbers of all nodes that the node waits for."""


@dataclass(frozen=True, slots=True)
class OperationExecution:
    """One execution of an operation."""

    program: Program
    row: int
    number: int
    """Number of the instruction."""
    iteration: int
    """Iteration (from 0) of the analysed loop, also for operations nested deeper in its body."""


@dataclass(frozen=True, slots=True)
class CarriedValues:
    """A carried value of the loop: the node that computes it in each iteration, None if no node
    does.
    """

    name: str
    nodes: tuple[Node | None, ...]
    decides: bool
    """True if the condition of the next iteration is computed from this value."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, weakref_slot=True)
class Dependences:
    """Acyclic graph of the operations of a loop's first iterations.

    A node is an operation, which takes one tick, or a joint (None), which takes none. Joints mark
    where an iteration or branch begins or ends.
    """

    operations: tuple[OperationExecution | None, ...]
    needs: tuple[tuple[Node, ...], ...]
    begins: tuple[Node, ...]
    """Joint per iteration that all its nodes wait for: the decision that the iteration runs."""
    ends: tuple[Node, ...]
    """Joint per iteration that waits for all its nodes and for the previous iterations."""
    carried: tuple[CarriedValues, ...]
    iterations: int
    """Iteration count of the loop so far; greater than ``len(begins)`` if the node limit was
    reached.
    """
    is_cut: bool
    """True if the first iteration alone exceeds the node limit; the graph contains its first
    operations.
    """
    window: int
    """Number of iterations that may run in parallel according to the model."""


def dependences(run: Run, address: str, limit: int = 100_000) -> Dependences:
    """Return the dependence graph of the loop execution at a concrete address, with at most
    ``limit`` nodes.

    An address is written as ``main/outer[1]/body/inner``. An operation waits for its operands, and
    for the condition that starts its iteration or branch. Accesses to a variable and draws of one
    random generator stay in order. Values from outside the loop are available from the start. Raise
    ``AddressError`` if the loop does not exist, ``ValueUnavailable`` if it did not begin.
    """
    program, row = run.rows_of(Address.parse(address))
    layer = program.layer_of_label.get(Address.parse(address).segments[-1].label)
    for number, instruction in enumerate(program.instructions):
        if instruction.node.id == layer and isinstance(instruction.region, LoopRegion):
            if row >= run.timeline.executions.calls(program, number):
                raise ValueUnavailable(f"{address} has not begun: run until it has")
            return _Walk(run, limit).loop(row, instruction, instruction.region)
    raise AddressError(
        f"{address} is not a loop: expected the address of a Loop, TensorIterator or Scan"
    )


_SlotNodes = dict[Slot, Node]
"""Node that computes each slot of a row; slots available from the start have no entry."""
_Traversal = Iterator["_Traversal"]
"""Traversal of a graph or region; yields nested traversals to finish before it resumes."""


@dataclass(eq=False)
class _Walk:
    run: Run
    limit: int
    operations: list[OperationExecution | None] = field(
        default_factory=list["OperationExecution | None"]
    )
    needs: list[tuple[Node, ...]] = field(default_factory=list[tuple[Node, ...]])
    awaited: list[bool] = field(default_factory=list[bool])
    """True for nodes that a later node waits for."""
    begins: list[Node] = field(default_factory=list[Node])
    ends: list[Node] = field(default_factory=list[Node])
    hidden: defaultdict[Slot, tuple[Node | None, list[Node]]] = field(
        default_factory=lambda: defaultdict(lambda: (None, []))
    )
    """Last writer and the readers since, of each variable and random state."""

    def loop(self, row: int, instruction: Instruction, region: LoopRegion) -> Dependences:
        first, end = self.run.timeline.executions.rows_of(region, row)
        begin, bodies, is_cut = self._node(None, ()), list[_SlotNodes](), False
        for iteration, body_row in enumerate(range(first, end)):
            size = len(self.operations)
            body = _bind_parameters(region, _SlotNodes(), bodies[-1] if bodies else None)
            self._traverse(self._graph(region.program, body_row, body, begin, iteration))
            is_full = len(self.operations) >= self.limit
            is_cut = is_full and not iteration
            if is_full and iteration:
                del self.operations[size:], self.needs[size:]
                break
            self.begins.append(begin)
            self.ends.append(self._join(size, self.ends[-1:]))
            bodies.append(body)
            if is_cut:
                break
            begin = self._node(None, (begin, *_nodes_of(body, region.condition_result)))
        return Dependences(
            operations=tuple(self.operations),
            needs=tuple(self.needs),
            begins=tuple(self.begins),
            ends=tuple(self.ends),
            carried=tuple(_carried(region, bodies)),
            iterations=end - first,
            is_cut=is_cut,
            window=window_of(instruction.node),
        )

    def _traverse(self, start: _Traversal) -> None:
        """Run a traversal with an explicit stack, because graphs nest to any depth."""
        stack = [start]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            else:
                stack.append(inner)

    def _node(self, operation: OperationExecution | None, needs: Sequence[Node]) -> Node:
        for node in needs:
            self.awaited[node] = True
        self.operations.append(operation)
        self.needs.append(tuple(dict.fromkeys(needs)))
        self.awaited.append(False)
        return len(self.operations) - 1

    def _join(self, start: Node, others: Sequence[Node] = ()) -> Node:
        """Add a joint that waits for all nodes from ``start`` that no other node waits for yet."""
        return self._node(
            None,
            (
                *others,
                *(node for node in range(start, len(self.operations)) if not self.awaited[node]),
            ),
        )

    # -- graphs

    def _graph(
        self, program: Program, row: int, nodes: _SlotNodes, begin: Node, iteration: int
    ) -> _Traversal:
        executions = self.run.timeline.executions
        for number, instruction in enumerate(program.instructions):
            if row >= executions.calls(program, number) or len(self.operations) >= self.limit:
                return
            match instruction.region:
                case None:
                    self._operation(
                        OperationExecution(program, row, number, iteration),
                        instruction,
                        nodes,
                        begin,
                    )
                case LoopRegion() as region:
                    yield self._inner_loop(instruction, region, row, nodes, begin, iteration)
                case IfRegion() | CallRegion() as region:
                    yield self._branch(region, row, nodes, begin, iteration)

    def _operation(
        self,
        operation: OperationExecution,
        instruction: Instruction,
        nodes: _SlotNodes,
        begin: Node,
    ) -> None:
        needs = [begin, *_nodes_of(nodes, *instruction.reads)]
        for slot in (instruction.state, instruction.variable):
            if slot is not None:
                writer, readers = self.hidden[slot]
                writes = slot == instruction.state or instruction.assigns
                needs += [
                    dependency
                    for dependency in (writer, *(readers if writes else ()))
                    if dependency is not None
                ]
        node = self._node(operation, needs)
        for slot in (instruction.state, instruction.variable):
            if slot is not None and (slot == instruction.state or instruction.assigns):
                self.hidden[slot] = (node, [])
            elif slot is not None:
                self.hidden[slot][1].append(node)
        nodes.update(dict.fromkeys(instruction.outputs, node))

    def _branch(
        self,
        region: IfRegion | CallRegion,
        row: int,
        nodes: _SlotNodes,
        begin: Node,
        iteration: int,
    ) -> _Traversal:
        if isinstance(region, IfRegion):
            program, branch_row = self.run.timeline.executions.branch(region, row)
            branch = region.then if program is region.then.program else region.otherwise
            begin = self._node(None, (begin, *_nodes_of(nodes, region.condition)))
        else:
            branch, branch_row = region.branch, row
        inner = {parameter: nodes[outer] for parameter, outer in branch.bindings if outer in nodes}
        yield self._graph(branch.program, branch_row, inner, begin, iteration)
        for slot, result in zip(region.outputs, branch.results, strict=False):
            nodes[slot] = self._node(None, (begin, *_nodes_of(inner, result)))

    # -- loops

    def _inner_loop(
        self,
        instruction: Instruction,
        region: LoopRegion,
        row: int,
        outer: _SlotNodes,
        begin: Node,
        iteration: int,
    ) -> _Traversal:
        window = window_of(instruction.node)
        decide = [
            region.trip_count,
            region.condition,
            *(sliced.source for sliced in region.sliced if region.trip_count is None),
        ]
        begin = self._node(None, (begin, *_nodes_of(outer, *decide)))
        bodies: list[_SlotNodes] = []
        ends: list[Node] = []
        for number, body_row in zip(
            count(), range(*self.run.timeline.executions.rows_of(region, row))
        ):
            size = len(self.operations)
            if number >= window:
                begin = self._node(None, (begin, ends[number - window]))
            body = _bind_parameters(region, outer, bodies[-1] if bodies else None)
            yield self._graph(region.program, body_row, body, begin, iteration)
            if len(self.operations) >= self.limit:
                return
            ends.append(self._join(size, ends[-1:]))
            begin = self._node(None, (begin, *_nodes_of(body, region.condition_result)))
            bodies.append(body)
        for output in region.outputs:
            if isinstance(output, Concatenated):
                parts = [node for body in bodies for node in _nodes_of(body, output.result)]
            else:
                parts = (
                    _nodes_of(bodies[-1], output.result)
                    if bodies
                    else _nodes_of(outer, output.initial)
                )
            outer[output.slot] = self._node(None, (begin, *parts))


def _bind_parameters(
    region: LoopRegion, outer: _SlotNodes, before: _SlotNodes | None
) -> _SlotNodes:
    """Return the nodes that compute the Parameters of an iteration.

    ``before``: nodes of the previous iteration, None for the first.
    """
    body = _SlotNodes()
    for slot, binding in region.binding.items():
        match binding:
            case CarriedValue():
                sources = (
                    _nodes_of(outer, binding.initial)
                    if before is None
                    else _nodes_of(before, binding.result)
                )
            case Sliced() | Invariant():
                sources = _nodes_of(outer, binding.source)
            case Counter() | Unfed():
                sources = []
        if sources:
            body[slot] = sources[0]
    return body


def _carried(region: LoopRegion, bodies: Sequence[_SlotNodes]) -> Iterator[CarriedValues]:
    names, decide = value_names(region.program), _deciding_parameters(region)
    for port in region.carried:
        nodes = tuple(body.get(port.result) for body in bodies)
        yield CarriedValues(names[port.parameter], nodes, port.parameter in decide)


def _nodes_of(nodes: _SlotNodes, *slots: Slot | None) -> list[Node]:
    return [nodes[slot] for slot in slots if slot is not None and slot in nodes]


def _deciding_parameters(region: LoopRegion) -> frozenset[Slot]:
    """Return the Parameters from which the body computes the condition of the next iteration."""
    waiting = [] if region.condition_result is None else [region.condition_result]
    seen = set(waiting)
    while waiting:
        number = region.program.producer.get(waiting.pop())
        if number is not None:
            inputs = set(region.program.instructions[number].inputs) - seen
            seen |= inputs
            waiting += inputs
    return frozenset(seen & region.program.parameter_slots)
