"""What one execution of a loop did as a graph: every operation of every iteration, and what each
had to wait for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from loopscope.debug.run import Run
from loopscope.debug.suggestions import value_names
from loopscope.errors import AddressError, ValueUnavailable
from loopscope.executor.plan.body_ports import (
    CarriedValue,
    Concatenated,
    Counter,
    Invariant,
    Sliced,
    Unfed,
)
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import CallRegion, IfRegion, Instruction, LoopRegion, Program
from loopscope.ir.address import Address
from loopscope.ir.parallel_iterations import window_of

Node = int
"""Number of a node; whatever a node waits for has a smaller one."""


@dataclass(frozen=True, slots=True)
class OperationExecution:
    """One execution of an operation."""

    program: Program
    row: int
    number: int
    """Of the instruction."""
    iteration: int
    """0-based, of the loop that is looked at, wherever in its body the operation lies."""


@dataclass(frozen=True, slots=True)
class CarriedValues:
    """One carried value of the loop: the node that gives it in each iteration, None where
    nothing computes it.
    """

    name: str
    nodes: tuple[Node | None, ...]
    decides: bool
    """The condition of the next iteration is computed from it."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, weakref_slot=True)
class Dependences:
    """The operations of a loop's first iterations, as a graph without circles.

    A node is an operation, which takes one tick, or a joint (None), which takes none: where an
    iteration begins or ends, or a branch.
    """

    operations: tuple[OperationExecution | None, ...]
    needs: tuple[tuple[Node, ...], ...]
    begins: tuple[Node, ...]
    """By iteration the joint that all of it waits for: it is known that the iteration runs."""
    ends: tuple[Node, ...]
    """By iteration the joint that waits for all of it, and for the iterations before."""
    carried: tuple[CarriedValues, ...]
    iterations: int
    """Of the loop, so far; more than ``begins`` where there were too many operations."""
    is_cut: bool
    """Even the first iteration has too many operations: there are the first ones of it."""
    window: int
    """How many iterations the model says may be under way at once."""


def dependences(run: Run, address: str, most: int = 100_000) -> Dependences:
    """What the execution of a loop at a concrete address (``main/outer[1]/body/inner``) has done so
    far, at most so many nodes.

    An operation waits for its operands, and for the condition to say that its iteration (or branch)
    runs. Reads and writes of a variable, and draws of one random generator, keep their order.
    Values from outside the loop are there from the start. ``AddressError`` when there is no loop,
    ``ValueUnavailable`` when it has not begun.
    """
    program, row = run.rows_of(Address.parse(address))
    layer = program.layer_of_label.get(Address.parse(address).segments[-1].label)
    for number, instruction in enumerate(program.instructions):
        if instruction.node.id == layer and isinstance(instruction.region, LoopRegion):
            if row >= run.timeline.executions.calls(program, number):
                raise ValueUnavailable(f"{address} has not begun: run until it has")
            return _Walk(run, most).loop(row, instruction, instruction.region)
    raise AddressError(f"{address} is no loop: give the address of a Loop, TensorIterator or Scan")


_Made = dict[Slot, Node]
"""The node that gives each slot of one row its value; a slot without one has its value from the
start.
"""
_Open = Iterator["_Open"]
"""A graph or region that is gone through; it gives what lies in it, which is to be gone through
before it goes on.
"""


@dataclass(eq=False)
class _Walk:
    run: Run
    most: int
    operations: list[OperationExecution | None] = field(
        default_factory=list["OperationExecution | None"]
    )
    needs: list[tuple[Node, ...]] = field(default_factory=list[tuple[Node, ...]])
    awaited: list[bool] = field(default_factory=list[bool])
    """Whether a later node waits for it."""
    begins: list[Node] = field(default_factory=list[Node])
    ends: list[Node] = field(default_factory=list[Node])
    hidden: defaultdict[Slot, tuple[Node | None, list[Node]]] = field(
        default_factory=lambda: defaultdict(lambda: (None, []))
    )
    """Of each variable and random state: who wrote it last, and who has read it since."""

    def loop(self, row: int, instruction: Instruction, region: LoopRegion) -> Dependences:
        first, end = self.run.timeline.executions.rows_of(region, row)
        begin, bodies, is_cut = self._node(None, ()), list[_Made](), False
        for iteration, at in enumerate(range(first, end)):
            size = len(self.operations)
            body = _bound(region, _Made(), bodies[-1] if bodies else None)
            self._go(self._graph(region.program, at, body, begin, iteration))
            is_full = len(self.operations) >= self.most
            is_cut = is_full and not iteration
            if is_full and iteration:
                del self.operations[size:], self.needs[size:]
                break
            self.begins.append(begin)
            self.ends.append(self._end(size, self.ends[-1:]))
            bodies.append(body)
            if is_cut:
                break
            begin = self._node(None, (begin, *_known(body, region.condition_result)))
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

    def _go(self, start: _Open) -> None:
        """Graphs lie in each other as deep as they like: what is open stands on a stack of our
        own.
        """
        stack = [start]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            else:
                stack.append(inner)

    def _node(self, operation: OperationExecution | None, needs: Sequence[Node]) -> Node:
        for one in needs:
            self.awaited[one] = True
        self.operations.append(operation)
        self.needs.append(tuple(dict.fromkeys(needs)))
        self.awaited.append(False)
        return len(self.operations) - 1

    def _end(self, start: Node, also: Sequence[Node] = ()) -> Node:
        """Waits for all nodes from one on: for those that no other of them waits for."""
        return self._node(
            None,
            (*also, *(one for one in range(start, len(self.operations)) if not self.awaited[one])),
        )

    # -- graphs
    # -------------------------------------------------------------------------------------------------------

    def _graph(self, program: Program, row: int, made: _Made, begin: Node, iteration: int) -> _Open:
        executions = self.run.timeline.executions
        for number, instruction in enumerate(program.instructions):
            if row >= executions.calls(program, number) or len(self.operations) >= self.most:
                return
            match instruction.region:
                case None:
                    self._operation(
                        OperationExecution(program, row, number, iteration),
                        instruction,
                        made,
                        begin,
                    )
                case LoopRegion() as region:
                    yield self._inner_loop(instruction, region, row, made, begin, iteration)
                case IfRegion() | CallRegion() as region:
                    yield self._branch(region, row, made, begin, iteration)

    def _operation(
        self, operation: OperationExecution, instruction: Instruction, made: _Made, begin: Node
    ) -> None:
        needs = [begin, *_known(made, *instruction.reads)]
        for slot in (instruction.state, instruction.variable):
            if slot is not None:
                writer, readers = self.hidden[slot]
                writes = slot == instruction.state or instruction.assigns
                needs += [one for one in (writer, *(readers if writes else ())) if one is not None]
        node = self._node(operation, needs)
        for slot in (instruction.state, instruction.variable):
            if slot is not None and (slot == instruction.state or instruction.assigns):
                self.hidden[slot] = (node, [])
            elif slot is not None:
                self.hidden[slot][1].append(node)
        made.update(dict.fromkeys(instruction.outputs, node))

    def _branch(
        self, region: IfRegion | CallRegion, row: int, made: _Made, begin: Node, iteration: int
    ) -> _Open:
        if isinstance(region, IfRegion):
            program, at = self.run.timeline.executions.branch(region, row)
            branch = region.then if program is region.then.program else region.otherwise
            begin = self._node(None, (begin, *_known(made, region.condition)))
        else:
            branch, at = region.branch, row
        inner = {parameter: made[outer] for parameter, outer in branch.bindings if outer in made}
        yield self._graph(branch.program, at, inner, begin, iteration)
        for slot, result in zip(region.outputs, branch.results, strict=False):
            made[slot] = self._node(None, (begin, *_known(inner, result)))

    # -- loops
    # --------------------------------------------------------------------------------------------------------

    def _inner_loop(
        self,
        instruction: Instruction,
        region: LoopRegion,
        row: int,
        made: _Made,
        begin: Node,
        iteration: int,
    ) -> _Open:
        window = window_of(instruction.node)
        decide = [
            region.trip_count,
            region.condition,
            *(one.source for one in region.sliced if region.trip_count is None),
        ]
        begin = self._node(None, (begin, *_known(made, *decide)))
        bodies: list[_Made] = []
        ends: list[Node] = []
        for number, at in zip(count(), range(*self.run.timeline.executions.rows_of(region, row))):
            size = len(self.operations)
            if number >= window:
                begin = self._node(None, (begin, ends[number - window]))
            body = _bound(region, made, bodies[-1] if bodies else None)
            yield self._graph(region.program, at, body, begin, iteration)
            if len(self.operations) >= self.most:
                return
            ends.append(self._end(size, ends[-1:]))
            begin = self._node(None, (begin, *_known(body, region.condition_result)))
            bodies.append(body)
        for output in region.outputs:
            if isinstance(output, Concatenated):
                parts = [node for body in bodies for node in _known(body, output.result)]
            else:
                parts = (
                    _known(bodies[-1], output.result) if bodies else _known(made, output.initial)
                )
            made[output.slot] = self._node(None, (begin, *parts))


def _bound(region: LoopRegion, outer: _Made, before: _Made | None) -> _Made:
    """What gives the Parameters of an iteration their values; ``before``: in the iteration
    before, None for the first.
    """
    body = _Made()
    for slot, one in region.binding.items():
        match one:
            case CarriedValue():
                found = _known(outer, one.initial) if before is None else _known(before, one.result)
            case Sliced() | Invariant():
                found = _known(outer, one.source)
            case Counter() | Unfed():
                found = []
        if found:
            body[slot] = found[0]
    return body


def _carried(region: LoopRegion, bodies: Sequence[_Made]) -> Iterator[CarriedValues]:
    names, decide = value_names(region.program), _decides(region)
    for one in region.carried:
        nodes = tuple(body.get(one.result) for body in bodies)
        yield CarriedValues(names[one.parameter], nodes, one.parameter in decide)


def _known(made: _Made, *slots: Slot | None) -> list[Node]:
    return [made[slot] for slot in slots if slot is not None and slot in made]


def _decides(region: LoopRegion) -> frozenset[Slot]:
    """The Parameters that the condition for the next iteration is computed from, in the body
    itself.
    """
    waiting = [] if region.condition_result is None else [region.condition_result]
    seen = set(waiting)
    while waiting:
        number = region.program.producer.get(waiting.pop())
        if number is not None:
            found = set(region.program.instructions[number].inputs) - seen
            seen |= found
            waiting += found
    return frozenset(seen & region.program.parameter_slots)
