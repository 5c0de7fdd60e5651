"""Why a loop ended: one sentence, and the chain of values that proves it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.debug.debugger import Debugger
from engine.errors import EngineError
from engine.explain.pattern import Pattern, pattern
from engine.ir.address import Address, decode
from engine.run.ledger import LoopTable
from engine.run.plan import Instruction, LoopRegion, Program
from engine.trace.control_flow import ControlFlowRecord

_COMPARISON = re.compile(r"\{0\} (?P<sign>==|!=|<=|>=|<|>) \{1\}")
_FALSE = {"==": "does not equal", "!=": "equals", "<": "is not <", "<=": "is not <=", ">": "is not >", ">=": "is not >="}
"""What it means that a comparison is false."""
_LOGIC = {"{0} & {1}": "and", "{0} | {1}": "or", "~{0}": "not"}
_OF_BITS = {"BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseNot": "not"}
_LONGEST_CHAIN = 12


@dataclass(frozen=True, slots=True)
class Fact:
    """One link of a proof."""

    address: str
    operation: str
    """Operation type, such as ``Less``."""
    text: str
    """What held there, such as ``10.5 < 10 is not < 10``."""
    operands: tuple[str, ...]
    """Addresses of the values that decided it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one execution of a loop."""

    address: str
    record: ControlFlowRecord
    pattern: Pattern
    declared: int | None
    """The trip count that was asked for, -1 for no limit; None for what has none."""
    sentence: str
    proof: tuple[Fact, ...]
    """From the condition back to the operands that decided; empty when no condition did."""


def verdict(debugger: Debugger, address: str) -> Verdict:
    """The verdict on the loop execution at an address such as ``main/outer[2]/body/inner``.

    Iterations that are left out are those shown at the cursor. ``AddressError`` or ``ValueUnavailable`` when there is no such execution.
    """
    program, row, region, instruction = execution(debugger, address)
    place = f"{debugger.timeline.address(program, row)}/{instruction.label}"
    record = _record(debugger, place, region, row)
    declared = _declared(debugger, program, row, region)
    proof: tuple[Fact, ...] = ()
    if record.ended_by == "condition" and region.condition_result is not None:
        proof = _proof(debugger, region.program, f"{place}[{(record.iterations or 1) - 1}]/body", region.condition_result)
    elif record.ended_by == "initial_condition" and region.condition is not None:
        proof = _proof(debugger, program, debugger.timeline.address(program, row), region.condition)
    static = f"{program.address}/{instruction.label}"
    return Verdict(place, record, pattern(debugger, static), declared, _sentence(record, declared, proof, debugger.failure), proof)


def execution(debugger: Debugger, address: str) -> tuple[Program, int, LoopRegion, Instruction]:
    """The program and row in which a loop ran, and the loop."""
    parsed = Address.parse(address)
    anchor, row = debugger.rows_of(parsed)
    label = parsed.segments[-1].label
    for number in anchor.regions:
        instruction = anchor.instructions[number]
        if instruction.label == label and isinstance(instruction.region, LoopRegion):
            debugger.must_have_begun(anchor, row, number)
            return anchor, row, instruction.region, instruction
    raise EngineError(f"{address} is no loop")


def _record(debugger: Debugger, place: str, region: LoopRegion, row: int) -> ControlFlowRecord:
    table = debugger.machine.ledger.tables[region.table]
    assert isinstance(table, LoopTable)
    return debugger.control_flow.record_of(region, row, place)


def _declared(debugger: Debugger, program: Program, row: int, region: LoopRegion) -> int | None:
    if region.trip_count is None:
        return None
    return int(np.asarray(debugger.values.get(debugger.timeline, program, row, region.trip_count)).reshape(-1)[0])


def _sentence(record: ControlFlowRecord, declared: int | None, proof: tuple[Fact, ...], failure: str | None) -> str:
    count = record.iterations or 0
    times = f"{count} iteration{'' if count == 1 else 's'}"
    most = "" if declared is None else " (no limit)" if is_no_limit(declared) else f" of at most {declared}"
    because = f" because {proof[-1].text}" if proof else ""
    match record.ended_by:
        case "condition":
            name = f"`{proof[0].address.rpartition('/')[2]}`" if proof else "its condition"
            return f"Stopped after {times}{most}: {decode(name)} became false{because}."
        case "trip_count":
            return f"Ran {'its one iteration' if count == 1 else f'all {times}'}: the trip count was reached."
        case "slices_exhausted":
            asked = f", though the trip count asked for {declared}" if declared is not None and declared > count else ""
            return f"Ran {times}: the sliced input ran out{asked}."
        case "zero_trip_count":
            if declared is not None and declared < 0:
                return f"Never started: the trip count is {declared}, which means no iteration in ONNX (and no limit in OpenVINO)."
            return "Never started: the trip count is 0."
        case "initial_condition":
            return f"Never started: the initial condition is false{because}."
        case "limit":
            return f"Paused after {times}{most}: {failure or 'a limit was reached'}."
        case "error":
            return f"Failed in iteration {count + 1}{most}, after {times} that finished."
        case "stopped":
            return f"Stopped by hand after {times}{most}."
        case _:
            return f"Running: {times}{most} finished so far."


def is_no_limit(trip_count: int) -> bool:
    """Whether a trip count means no limit: negative, or the greatest i32 or i64, as some frameworks spell it."""
    return trip_count < 0 or trip_count in (2**31 - 1, 2**63 - 1)


def _proof(debugger: Debugger, program: Program, graph: str, slot: int) -> tuple[Fact, ...]:
    """Back from a false condition along the operands that made it so, within one graph."""
    facts: list[Fact] = []
    while len(facts) < _LONGEST_CHAIN:
        number = program.producer.get(slot)
        if number is None:
            if not facts:
                facts.append(_parameter_fact(debugger, program, graph, slot))
            break
        instruction = program.instructions[number]
        fact, following = _fact(debugger, program, graph, instruction)
        facts.append(fact)
        if following is None:
            break
        slot = following
    return tuple(facts)


def _fact(debugger: Debugger, program: Program, graph: str, instruction: Instruction) -> tuple[Fact, int | None]:
    """What an operation that gave false says, and the operand to look at next."""
    address = f"{graph}/{instruction.label}"
    named = [_name(program, graph, slot) for slot in instruction.inputs]
    values = [_value(debugger, one) for one in named]
    fixed = [slot not in program.producer and slot not in program.parameters.values() for slot in instruction.inputs]
    shown = [_shown("" if is_const else name, value) for name, value, is_const in zip(named, values, fixed, strict=True)]
    following: int | None = None
    match _logic(instruction, values):
        case "and":
            false = [number for number, value in enumerate(values) if value is not None and not np.all(value)]
            following = instruction.inputs[false[0]] if false else None
            sides = " and ".join(shown[number] for number in false) or "one side"
            text = f"{sides} {'are' if len(false) > 1 else 'is'} false"
        case "or":
            following = instruction.inputs[0]
            text = "neither side is true"
        case "not":
            text = f"{shown[0]} is true"
        case "":
            computed = [slot for slot in instruction.inputs if slot in program.producer]
            same = len(computed) == 1 and _is_same(values[instruction.inputs.index(computed[0])], _value(debugger, address))
            following = computed[0] if same else None
            text = f"{instruction.node.type}({', '.join(shown)}) is {_shown('', _value(debugger, address))}"
        case sign:
            text = f"{shown[0]} {_FALSE[sign]} {shown[1]}"
    return Fact(address, instruction.node.type, text, tuple(named)), following


def _logic(instruction: Instruction, values: Sequence[np.ndarray | None]) -> str:
    """The sign of a comparison; ``and``, ``or`` or ``not``, also of bits that are truths; empty for what is neither."""
    comparison = _COMPARISON.fullmatch(instruction.symbol)
    if comparison and len(values) == 2:
        return comparison["sign"]
    if instruction.symbol in _LOGIC:
        return _LOGIC[instruction.symbol]
    truths = all(value is not None and value.dtype == bool for value in values)
    return _OF_BITS.get(instruction.node.type, "") if truths else ""


def _parameter_fact(debugger: Debugger, program: Program, graph: str, slot: int) -> Fact:
    name = _name(program, graph, slot)
    node = next((layer for layer, one in program.parameters.items() if one == slot), None)
    kind = "Const" if node is None else "Parameter"
    return Fact(name, kind, _shown(name, _value(debugger, name)), ())


def _name(program: Program, graph: str, slot: int) -> str:
    results = set(program.results)
    labels = {layer: label for label, layer in program.layer_of_label.items()}
    for (layer, output), one in program.slots.items():
        if one == slot and layer not in results:
            return f"{graph}/{labels[layer]}" + (f":{output}" if output else "")
    return graph


def _value(debugger: Debugger, address: str) -> np.ndarray | None:
    try:
        return debugger.value(address)
    except EngineError:
        return None


def _is_same(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    return one is not None and other is not None and one.size == other.size == 1 and bool(one.reshape(-1)[0] == other.reshape(-1)[0])


def _shown(name: str, value: np.ndarray | None) -> str:
    """``name = value`` for what has one element; the name alone for larger tensors.

    >>> _shown("main/while[2]/body/total", np.float32(10.5))
    '`total` = 10.5'
    """
    label = decode(name.rpartition("/")[2])
    quoted = f"`{label}`" if label else ""
    if value is None or np.size(value) != 1:
        return quoted or "the value"
    array = np.asarray(value)
    (item,) = array.reshape(-1)
    text = f"{float(item):.6g}" if array.dtype.kind in "fV" else str(item).lower() if array.dtype == bool else str(item)
    return f"{quoted} = {text}" if quoted else text
