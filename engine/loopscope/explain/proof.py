"""Proof of a boolean: the values that it follows from, traced back through branches, loops and back
edges to comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loopscope.debug.overrides_by_address import is_changed
from loopscope.debug.result import as_public
from loopscope.debug.run import Run
from loopscope.executor.plan.plan import ABSENT, IfRegion, Instruction, LoopRegion, Program
from loopscope.executor.plan.slots import Slot
from loopscope.explain.deciding_values import OTHER, PASSING, REDUCTIONS, Decision, decision
from loopscope.explain.facts import (
    SIGNS,
    TESTS,
    Fact,
    Margin,
    element_text,
    margin,
    needs_all_digits,
    quoted,
    value_name,
)
from loopscope.explain.index_provenance import element, enclosing_part, moved_elements, moves
from loopscope.explain.provenance import ProvenanceWalk, Role, SlotPart
from loopscope.ir.readable import iteration_words

_MAX_FACTS = 32
_MAX_STEPS = 2_000
_ROLE_TEMPLATES: dict[Role, str] = {
    "back edge": "{0} was {1} in the previous iteration",
    "initial value": "its initial value {0} was {1}",
    "invariant": "the outer value {0} was {1}",
    "slice": "the outer value {0} was {1}",
    "branch": "the outer value {0} was {1}",
    "call": "the argument {0} was {1}",
}
"""Clause for a value that was passed on, by role: ``{0}`` is the source and ``{1}`` its value."""


@dataclass(frozen=True, slots=True)
class _Boolean:
    """One boolean element of a value."""

    place: SlotPart
    position: int
    """Flat index of the element."""
    depth: int


def prove(run: Run, program: Program, row: int, slot: Slot) -> tuple[Fact, ...]:
    """Return the facts that made a condition true or false, starting at the condition, each before
    its reasons.
    """
    return tuple(_Prover(run).facts(SlotPart(program, row, slot)))


class _Prover:
    def __init__(self, run: Run) -> None:
        self.run = run
        self.walk = ProvenanceWalk(run)

    def facts(self, place: SlotPart) -> list[Fact]:
        facts: list[Fact] = []
        waiting = [_Boolean(place, 0, 0)]
        seen: set[tuple[int, int, str]] = set()
        for _ in range(_MAX_STEPS):
            if not waiting or len(facts) >= _MAX_FACTS:
                break
            boolean = waiting.pop()
            fact, sources = self._step(boolean)
            key = boolean.place.program.index, boolean.place.slot, fact.text if fact else ""
            is_new = fact is not None and not (
                sources and key in seen
            )  # a flag that many iterations pass on is one fact
            if fact is not None and is_new:
                facts.append(fact)
            seen.add(key)
            waiting += [
                _Boolean(source, position, boolean.depth + is_new)
                for source, position in reversed(sources)
            ]
        return facts

    def _step(self, boolean: _Boolean) -> tuple[Fact | None, list[tuple[SlotPart, int]]]:
        """Return the fact about an element and the elements that it follows from.

        The fact is None where only the value is known.
        """
        place = boolean.place
        if is_changed(self.run, place.program, place.row, place.slot):
            value = element_text(self._value(place), boolean.position)
            text = f"{self._named(place)} was set to {value} by hand"
            return Fact(
                self.walk.address(place),
                self._kind(place),
                text,
                (),
                by_hand=True,
                depth=boolean.depth,
            ), []
        number = place.program.producer.get(place.slot)
        if number is None:
            return self._parameter_fact(boolean)
        instruction = place.program.instructions[number]
        if instruction.region is not None:
            return self._region_fact(boolean, instruction)
        return self._operation_fact(boolean, instruction)

    # -- what is handed on

    def _parameter_fact(self, boolean: _Boolean) -> tuple[Fact | None, list[tuple[SlotPart, int]]]:
        place = boolean.place
        source, role, position = self._source(boolean)
        if source is None or role is None:
            return (
                None if boolean.depth else self._fact(boolean, self._terminal_sentence(boolean), ())
            ), []
        if isinstance(self._value(source), tuple):  # an ONNX sequence, whose elements are tensors
            return self._fact(
                boolean,
                f"{self._value_clause(place, boolean.position)}, "
                f"as an element of {self._named(source)}",
                (source,),
            ), []
        if role == "back edge" and self._is_loop_constant(place, source):
            _, iteration = self.run.timeline.executions.parent_row(place.program, place.row)
            source = SlotPart(place.program, place.row - (iteration or 0), place.slot)
        text = _ROLE_TEMPLATES.get(role, "{0} was {1}").format(
            self._element(source, position), self._true_or_false(place, boolean.position)
        )
        return self._fact(boolean, text, (source,)), [(source, position)]

    def _terminal_sentence(self, boolean: _Boolean) -> str:
        """Return the sentence about a condition that no other value decided."""
        if self._is_fixed(boolean.place):
            value = element_text(self._value(boolean.place), boolean.position)
            return f"{self._named(boolean.place)} is the constant {value}"
        return self._value_clause(boolean.place, boolean.position)

    def _source(self, boolean: _Boolean) -> tuple[SlotPart | None, Role | None, int]:
        """Return the slot that an element was passed on from, its role, and its flat index in that
        slot.

        Return None for slot and role if the element was computed.
        """
        place = boolean.place
        part = element(np.shape(self._value(place)), boolean.position)
        source, role = next(iter(self.walk.sources_of(replace(place, part=part))), (None, None))
        if source is None:
            return None, None, 0
        position = source.part.first if source.part is not None else 0
        return replace(source, part=None), role, position

    def _is_loop_constant(self, place: SlotPart, source: SlotPart) -> bool:
        """Return True if a Parameter has the same value in every iteration."""
        slot = source.slot
        while (
            number := place.program.producer.get(slot)
        ) is not None and place.program.instructions[number].is_identity:
            slot = place.program.instructions[number].inputs[0]
        return slot == place.slot and not self.run.overrides.slots

    def _region_fact(
        self, boolean: _Boolean, instruction: Instruction
    ) -> tuple[Fact, list[tuple[SlotPart, int]]]:
        place, region = boolean.place, instruction.region
        value = self._true_or_false(place, boolean.position)
        links = list(self.walk.sources_of(place))
        result, role, position = self._source(boolean)
        if result is not None and role == "concatenated":
            _, iteration = self.run.timeline.executions.parent_row(result.program, result.row)
            giver = iteration_words(iteration or 0)
            text = f"{giver} gave {self._element(place, boolean.position)}, which was {value}"
            return self._fact(boolean, text, (result,)), [(result, position)]
        if not links:
            return self._fact(
                boolean, f"{self._named(place)} was {value}, because the loop ran no iteration", ()
            ), []
        if isinstance(region, IfRegion):
            text = (
                f"the {links[0][0].program.branch_name} branch of {self._named(place)} gave {value}"
            )
        elif links[0][1] == "initial value":
            text = f"{self._named(place)} ran no iteration, and its initial value was {value}"
        else:
            prefix = "the last iteration of " if isinstance(region, LoopRegion) else ""
            text = f"{prefix}{self._named(place)} gave {value}"
        assert result is not None
        sources = [(result, boolean.position)]
        if self._is_fixed(result):
            sources += [(source, 0) for source, role in links if role == "condition"]
        return self._fact(boolean, text, tuple(source for source, _ in sources)), sources

    def _is_fixed(self, place: SlotPart) -> bool:
        """Return True if a value is a Const, so that only the choice of the value decided."""
        return (
            place.slot not in place.program.producer
            and place.slot not in place.program.parameter_slots
        )

    # -- what is computed

    def _operation_fact(
        self, boolean: _Boolean, instruction: Instruction
    ) -> tuple[Fact, list[tuple[SlotPart, int]]]:
        if instruction.variable is not None:
            return self._variable_fact(boolean)
        program, row = boolean.place.program, boolean.place.row
        places = [SlotPart(program, row, slot) for slot in instruction.inputs]
        outcome = self._decision(boolean, instruction, places)
        decided = [(places[number], position) for number, position in outcome.elements]
        text = self._describe(outcome, decided, boolean) if decided else ""
        if not text:
            return self._call_fact(boolean, instruction, places), []
        operands = tuple(dict.fromkeys(place for place, _ in decided))
        follows = outcome.rule not in ("comparison", "every", "empty") and self._are_booleans(
            decided
        )
        sources = (
            [(place, position) for place, position in decided if not self._is_fixed(place)]
            if follows
            else []
        )
        return replace(
            self._fact(boolean, text, operands), margin=self._margin(outcome, decided)
        ), sources

    def _decision(
        self, boolean: _Boolean, instruction: Instruction, places: Sequence[SlotPart]
    ) -> Decision:
        """Return how an operation decided an element from its inputs at ``places``."""
        values = [self._value(place) for place in places]
        if instruction.node.type in REDUCTIONS and self._derives_from_booleans(places[0]):
            values[0] = values[0].astype(bool)
        output = self._value(boolean.place)
        outcome = OTHER
        if boolean.place.slot == instruction.outputs[0]:
            outcome = decision(instruction, values, output, boolean.position)
        if outcome is not OTHER or not moves(instruction) or not isinstance(output, np.ndarray):
            return outcome
        number = instruction.outputs.index(boolean.place.slot)
        part = element(output.shape, boolean.position)
        origins = moved_elements(instruction, values, output, number, part) or {}
        return Decision(
            "moved",
            tuple((index, part.first) for index, part in origins.items() if part is not None),
        )

    def _call_fact(
        self, boolean: _Boolean, instruction: Instruction, places: Sequence[SlotPart]
    ) -> Fact:
        """Return the fact about an operation as a call, if no element of an input decided alone."""
        operands = [place for place in places if place.slot != ABSENT]
        call = f"{instruction.node.type}({', '.join(map(self._value_text, operands))})"
        result = element_text(self._value(boolean.place), boolean.position)
        return self._fact(boolean, f"{call} gave {result}", operands)

    def _margin(self, outcome: Decision, decided: Sequence[tuple[SlotPart, int]]) -> Margin | None:
        if outcome.rule != "comparison":
            return None
        left, right = (
            np.asarray(self._value(place)).reshape(-1)[position] for place, position in decided
        )
        return margin(left, right, outcome.sign)

    def _variable_fact(self, boolean: _Boolean) -> tuple[Fact, list[tuple[SlotPart, int]]]:
        """Return the fact about the value that a variable had or was assigned."""
        source, role, position = self._source(boolean)
        if source is None:
            return self._fact(boolean, self._value_clause(boolean.place, boolean.position), ()), []
        words = {"assigned": "{0}, assigned before, was {1}", "operand": "{0} was {1}"}[
            role or "operand"
        ]
        text = words.format(
            self._element(source, position), self._true_or_false(boolean.place, boolean.position)
        )
        return self._fact(boolean, text, (source,)), [(source, position)]

    def _describe(
        self, outcome: Decision, decided: list[tuple[SlotPart, int]], boolean: _Boolean
    ) -> str:
        """Describe a decision."""
        if outcome.rule == "empty":
            return f"{value_name(self.walk, decided[0][0])} had no elements"
        names = [self._element(*operand) for operand in decided[:3]]
        truths = [self._true_or_false(*operand) for operand in decided[:3]]
        match outcome.rule:
            case "comparison":
                truth = self._true_or_false(boolean.place, boolean.position)
                question = self._comparison(outcome.sign, decided, truth)
                return f"{self._named(boolean.place)}{TESTS}{question}"
            case "both" if truths[0] == truths[1]:
                return f"{names[0]} and {names[1]} were both {truths[0]}"
            case "both":
                return f"{names[0]} was {truths[0]} and {names[1]} was {truths[1]}"
            case "every":
                group = enclosing_part(
                    np.array([position for _, position in decided]),
                    np.shape(self._value(decided[0][0])),
                )
                part = "" if group is None or group.is_whole else str(group)
                return (
                    f"every element of {value_name(self.walk, decided[0][0])}{part} was {truths[0]}"
                )
            case "choice":
                return f"{names[0]} was {truths[0]} and chose {names[1]}, which was {truths[1]}"
            case "passed" | "moved" if self._value(decided[0][0]).dtype != bool:
                ending = ", which is not 0" if truths[0] == "true" else ""
                return f"{self._value_clause(*decided[0])}{ending}"
            case _:
                return f"{names[0]} was {truths[0]}"

    def _comparison(self, sign: str, decided: list[tuple[SlotPart, int]], truth: str) -> str:
        """Return the comparison as text, followed by the values that it compared."""
        exact = needs_all_digits(
            [self._value(place).reshape(-1)[position] for place, position in decided]
        )
        literals = [self._is_literal(place) for place, _ in decided]
        sides = [
            element_text(self._value(place), position, exact=exact)
            if is_literal
            else self._element(place, position)
            for (place, position), is_literal in zip(decided, literals, strict=True)
        ]
        variables = list(
            dict.fromkeys(
                operand
                for operand, is_literal in zip(decided, literals, strict=True)
                if not is_literal
            )
        )
        answer = self._operand_values(variables, exact=exact) if variables else f"which is {truth}"
        return f"{sides[0]} {SIGNS.get(sign, sign)} {sides[1]}, {answer}"

    def _operand_values(self, operands: list[tuple[SlotPart, int]], *, exact: bool) -> str:
        if len(operands) == 1 or any(
            is_changed(self.run, place.program, place.row, place.slot) for place, _ in operands
        ):
            clauses = (
                self._value_clause(place, position, exact=exact) for place, position in operands
            )
            return f"and {', '.join(clauses)}"
        left, right = (
            element_text(self._value(place), position, exact=exact) for place, position in operands
        )
        return f"and both were {left}" if left == right else f"and they were {left} and {right}"

    def _is_literal(self, place: SlotPart) -> bool:
        """Return True for a Const with one element, which sentences show by value."""
        return self._is_fixed(place) and self._value(place).size == 1

    def _are_booleans(self, decided: list[tuple[SlotPart, int]]) -> bool:
        """Return True if all values are booleans, or numbers made from booleans."""
        return all(
            self._value(place).dtype == bool or self._derives_from_booleans(place)
            for place, _ in decided
        )

    def _derives_from_booleans(self, place: SlotPart) -> bool:
        """Return True if a value represents booleans as numbers."""
        while (number := place.program.producer.get(place.slot)) is not None:
            instruction = place.program.instructions[number]
            if not instruction.inputs or instruction.node.type not in PASSING | REDUCTIONS.keys():
                return False
            place = SlotPart(place.program, place.row, instruction.inputs[0])
            if np.asarray(self._value(place)).dtype == bool:
                return True
        return False

    # -- words

    def _fact(self, boolean: _Boolean, text: str, operands: Sequence[SlotPart]) -> Fact:
        place = boolean.place
        addresses = tuple(self.walk.address(operand) for operand in operands)
        return Fact(
            self.walk.address(place), self._kind(place), text, addresses, depth=boolean.depth
        )

    def _kind(self, place: SlotPart) -> str:
        number = place.program.producer.get(place.slot)
        if number is not None:
            return place.program.instructions[number].node.type
        return "Const" if self._is_fixed(place) else "Parameter"

    def _value(self, place: SlotPart) -> Any:
        """Return the value as an array, a non-tensor unchanged, and None for an omitted input."""
        if place.slot == ABSENT:
            return None
        return as_public(
            self.run.values.get(self.run.timeline, place.program, place.row, place.slot)
        )

    def _true_or_false(self, place: SlotPart, position: int) -> str:
        return str(bool(np.asarray(self._value(place)).reshape(-1)[position])).lower()

    def _named(self, place: SlotPart) -> str:
        return quoted(self.walk.address(place))

    def _element(self, place: SlotPart, position: int) -> str:
        """Return the name of an element, with its index if the tensor has several."""
        value, name = self._value(place), value_name(self.walk, place)
        if np.size(value) == 1:
            return name
        indices = ", ".join(str(index) for index in np.unravel_index(position, value.shape))
        return f"{name}[{indices}]" if name.startswith("`") else f"element [{indices}] of {name}"

    def _assignment_text(self, place: SlotPart, position: int) -> str:
        """Return ``name = value`` of an element; the value alone for a Const with one element.

        A value that was set by hand is described as such.
        """
        value = self._value(place)
        text = element_text(value, position)
        if is_changed(self.run, place.program, place.row, place.slot):
            return f"{self._element(place, position)}, which was set to {text} by hand,"
        return text if self._is_literal(place) else f"{self._element(place, position)} = {text}"

    def _value_clause(self, place: SlotPart, position: int, *, exact: bool = False) -> str:
        """Return ``name was value`` of an element, or ``name was set to value by hand``."""
        text = element_text(self._value(place), position, exact=exact)
        by_hand = is_changed(self.run, place.program, place.row, place.slot)
        return (
            f"{self._element(place, position)} was {f'set to {text} by hand' if by_hand else text}"
        )

    def _value_text(self, place: SlotPart) -> str:
        """Return ``name = value`` of a value with one element, otherwise the name alone."""
        value = self._value(place)
        return (
            self._assignment_text(place, 0)
            if isinstance(value, np.ndarray) and value.size == 1
            else value_name(self.walk, place)
        )
