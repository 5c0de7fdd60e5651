"""Why a truth came out as it did: the chain of values back to the operands that decided."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.debug.changes import is_changed
from engine.debug.debugger import Debugger
from engine.errors import EngineError
from engine.ir.address import decode
from engine.run.plan import Instruction, Program

_COMPARISON = re.compile(r"\{0\} (?P<sign>==|!=|<=|>=|<|>) \{1\}")
_HOLDS = {"==": "equals", "!=": "does not equal", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_FAILS = {"==": "does not equal", "!=": "equals", "<": "is not <", "<=": "is not <=", ">": "is not >", ">=": "is not >="}
"""What it means that a comparison is true, and that it is false."""
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
    """What held there, such as ``10.5 is not < 10``."""
    operands: tuple[str, ...]
    """Addresses of the values that decided it."""
    by_hand: bool = False
    """The value was set by hand: there is nothing behind it."""


def prove(debugger: Debugger, program: Program, row: int, slot: int, holds: bool) -> tuple[Fact, ...]:
    """Back from a condition that holds, or does not, along the operands that made it so, within one row of its graph."""
    facts: list[Fact] = []
    graph = debugger.timeline.address(program, row)
    while len(facts) < _LONGEST_CHAIN:
        number = program.producer.get(slot)
        if is_changed(debugger, program, row, slot):
            facts.append(_fact_by_hand(debugger, program, graph, slot))
            break
        if number is None:
            if not facts:
                facts.append(_parameter_fact(debugger, program, graph, slot))
            break
        fact, following = _fact(debugger, program, row, program.instructions[number], holds)
        facts.append(fact)
        if following is None:
            break
        slot, holds = following
    return tuple(facts)


def name_of(fact: Fact) -> str:
    """The name of what a fact is about, as it is quoted in sentences."""
    return _quoted(fact.address)


def _fact(debugger: Debugger, program: Program, row: int, instruction: Instruction, holds: bool) -> tuple[Fact, tuple[int, bool] | None]:
    """What an operation that gave true or false says, the operand to look at next, and whether that holds."""
    graph = debugger.timeline.address(program, row)
    address = f"{graph}/{instruction.label}"
    named = [_name(program, graph, slot) for slot in instruction.inputs]
    values = [_value(debugger, one) for one in named]
    shown = [_operand(debugger, program, row, *one) for one in zip(instruction.inputs, named, values, strict=True)]
    following: tuple[int, bool] | None = None
    match _logic(instruction, values):
        case "and" | "or" as joint if holds == (joint == "and"):
            following = instruction.inputs[0], holds
            text = "both sides are true" if holds else "neither side is true"
        case "and" | "or":
            deciding = [number for number, value in enumerate(values) if value is not None and bool(np.all(value)) == holds]
            following = (instruction.inputs[deciding[0]], holds) if deciding else None
            sides = " and ".join(shown[number] for number in deciding) or "one side"
            text = f"{sides} {'are' if len(deciding) > 1 else 'is'} {str(holds).lower()}"
        case "not":
            following = instruction.inputs[0], not holds
            text = f"{shown[0]} is {str(not holds).lower()}"
        case "":
            computed = [slot for slot in instruction.inputs if slot in program.producer]
            same = len(computed) == 1 and _is_same(values[instruction.inputs.index(computed[0])], _value(debugger, address))
            following = (computed[0], holds) if same else None
            text = f"{instruction.node.type}({', '.join(shown)}) is {_shown('', _value(debugger, address))}"
        case sign:
            text = f"{shown[0]} {(_HOLDS if holds else _FAILS)[sign]} {shown[1]}"
    return Fact(address, instruction.node.type, text, tuple(named)), following


def _operand(debugger: Debugger, program: Program, row: int, slot: int, name: str, value: np.ndarray | None) -> str:
    if is_changed(debugger, program, row, slot):
        return f"{_quoted(name)}, which was set to {_shown('', value)} by hand,"
    is_const = slot not in program.producer and slot not in program.parameters.values()
    return _shown("" if is_const else name, value)


def _logic(instruction: Instruction, values: Sequence[np.ndarray | None]) -> str:
    """The sign of a comparison; ``and``, ``or`` or ``not``, also of bits that are truths; empty for what is neither."""
    comparison = _COMPARISON.fullmatch(instruction.symbol)
    if comparison and len(values) == 2:
        return comparison["sign"]
    if instruction.symbol in _LOGIC:
        return _LOGIC[instruction.symbol]
    truths = all(value is not None and value.dtype == bool for value in values)
    return _OF_BITS.get(instruction.node.type, "") if truths else ""


def _fact_by_hand(debugger: Debugger, program: Program, graph: str, slot: int) -> Fact:
    name, number = _name(program, graph, slot), program.producer.get(slot)
    kind = _kind(program, slot) if number is None else program.instructions[number].node.type
    return Fact(name, kind, f"{_quoted(name)} was set to {_shown('', _value(debugger, name))} by hand", (), by_hand=True)


def _parameter_fact(debugger: Debugger, program: Program, graph: str, slot: int) -> Fact:
    name = _name(program, graph, slot)
    return Fact(name, _kind(program, slot), _shown(name, _value(debugger, name)), ())


def _kind(program: Program, slot: int) -> str:
    return "Parameter" if slot in program.parameter_slots else "Const"


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
    quoted = _quoted(name)
    if value is None or np.size(value) != 1:
        return quoted or "the value"
    array = np.asarray(value)
    (item,) = array.reshape(-1)
    text = f"{float(item):.6g}" if array.dtype.kind in "fV" else str(item).lower() if array.dtype == bool else str(item)
    return f"{quoted} = {text}" if quoted else text


def _quoted(name: str) -> str:
    label = decode(name.rpartition("/")[2])
    return f"`{label}`" if label else ""
