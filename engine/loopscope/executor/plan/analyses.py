"""Analyses of plans and models: dependences of a value, unpacked weights, values of any form, and
operations that do not run.

Dependences lead back through operations, bodies and enclosing graphs. Instructions that only unpack
weights of a narrower type are conversions, zero points and scales between constants. Values other
than tensors are sequences, maps and optionals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from loopscope.executor.plan.computed_once import FoldedKernel
from loopscope.executor.plan.plan import Instruction, Plan, Program
from loopscope.executor.plan.pruning import needed, part_of
from loopscope.executor.plan.slots import Slot
from loopscope.ir.address import graphs
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import SEQUENCE_MAP, Model
from loopscope.ir.recorded_rows import is_trace
from loopscope.ops.catalogue import Catalogue


def backward_slice(program: Program, slot: Slot) -> Iterator[Slot]:
    """Yield a slot and all slots that may feed it, each once."""
    waiting, seen = [(program, slot)], set[Slot]()
    while waiting:
        graph, source = waiting.pop()
        if source in seen:
            continue
        seen.add(source)
        yield source
        number = graph.producer.get(source)
        if number is not None:
            waiting += _feeding(graph, graph.instructions[number])
        elif graph.parent is not None and source in graph.parameter_slots:
            owner = graph.parent.instructions[graph.owner]
            waiting += _feeding(graph.parent, owner)


def _feeding(graph: Program, instruction: Instruction) -> list[tuple[Program, Slot]]:
    """Return the inputs of an operation, with the Results of its bodies."""
    inner = instruction.region.programs if instruction.region else ()
    return [(graph, slot) for slot in instruction.inputs] + [
        (body, slot) for body in inner for slot in body.results.values()
    ]


_UNPACKING_OPERATIONS = frozenset(
    {
        *("Convert", "ConvertLike", "Subtract", "Multiply", "Reshape", "Transpose"),
        *("Unsqueeze", "Squeeze", "Cast", "CastLike", "Sub", "Mul", "DequantizeLinear"),
    }
)
_MAX_PACKED_BITS = 16
"""Maximum bits of an element of packed weights."""


def unpacking(plan: Plan, program: Program) -> Mapping[int, ElementType]:
    """Return the numbers of the unpacking instructions of a graph, each with the type of the
    weights it unpacks.
    """
    nodes = {slot: node for slot, node in plan.constant_slots if slot in program.owned}
    packed = {
        slot: element_type
        for slot, node in nodes.items()
        if node.constant
        and (element_type := node.constant.element_type)
        and _is_packed(element_type)
    }
    result: dict[int, ElementType] = {}
    constants = set(nodes)
    for number, instruction in enumerate(program.instructions):
        inputs = [slot for slot in instruction.inputs if slot]
        packed_type = next((packed[slot] for slot in inputs if slot in packed), None)
        if (
            packed_type is not None
            and instruction.node.type in _UNPACKING_OPERATIONS
            and constants.issuperset(inputs)
        ):
            result[number] = packed_type
            packed |= dict.fromkeys(instruction.outputs, packed_type)
            constants.update(instruction.outputs)
    return result


def _is_packed(element_type: ElementType) -> bool:
    return 0 < element_type.bits <= _MAX_PACKED_BITS and element_type is not ElementType.BOOLEAN


def holds_sequences(model: Model, catalogue: Catalogue) -> bool:
    """Return True if an operation of a model takes or returns values other than tensors.

    Operations that create such values have a ``prepare`` function; Identity passes them on.
    """
    if model.dialect != "onnx" and not is_trace(model):
        return False
    nodes = [node for place in graphs(model) for node in place.graph.nodes]
    if any(port.form != "tensor" for node in nodes for port in node.outputs):
        return True
    if is_trace(model):
        return False
    kinds = {(node.type, node.opset) for node in nodes}
    operations = (catalogue.find(*kind) for kind in kinds)
    return any(type == SEQUENCE_MAP for type, _ in kinds) or any(
        operation is not None and not operation.only_tensors and operation.prepare is not None
        for operation in operations
    )


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Static addresses of operations that a plan does not run."""

    removed: tuple[str, ...]
    """Operations that do not run, because no requested value needs them."""
    folded: tuple[str, ...]
    """Operations on constants only, whose results are stored."""
    computed_once: tuple[tuple[str, str], ...]
    """Pairs of an operation and the earlier operation that computes the same value."""

    def sentences(self, limit: int = 3) -> tuple[str, ...]:
        """Return one sentence for each kind that occurs. Up to ``limit`` operations are named; more
        are counted.
        """
        removed = f"removed as not needed: {_some(self.removed, limit)}" if self.removed else ""
        count = len(self.folded)
        named = f" ({', '.join(self.folded)})" if count <= limit else ""
        folded = (
            f"folded: {count:,} operation{'s' * (count != 1)} on constants{named}" if count else ""
        )
        pairs = tuple(f"{address} with {equal}" for address, equal in self.computed_once)
        return tuple(
            filter(
                None, (removed, folded, f"computed once: {_some(pairs, limit)}" if pairs else "")
            )
        )


def _some(names: tuple[str, ...], limit: int) -> str:
    return ", ".join(names) if len(names) <= limit else f"{len(names):,} operations"


def left_out_for_outputs(plan: Plan) -> LeftOut:
    """Return what a run for the model's outputs leaves out. A Debugger, which shows all values,
    does not prune.
    """
    if not plan.optimise.prune:
        return left_out(plan)
    outputs = [(plan.main, slot) for slot in plan.main.results.values()]
    return left_out(part_of(plan, needed(plan, outputs, assigns=True)))


def left_out(plan: Plan) -> LeftOut:
    folded: list[str] = []
    shared: list[tuple[str, str]] = []
    for program in plan.programs:
        for instruction in program.instructions:
            address = f"{program.address}/{instruction.label}"
            if instruction.same_as:
                first = program.instructions[program.producer[instruction.same_as[0]]]
                shared.append((address, f"{program.address}/{first.label}"))
            elif isinstance(instruction.call, FoldedKernel):
                folded.append(address)
    return LeftOut(plan.removed, tuple(folded), tuple(shared))
