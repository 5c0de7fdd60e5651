"""A model as code: a graph with all its loops and branches as readable Python, and which line is which node.

The text runs: with ``runnable`` it gives the same numbers. Nothing of the model enters it but as identifiers made of
letters, digits and ``_``, as numbers, and as quoted text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from engine.check.propagate import Propagated, propagate
from engine.errors import AddressError, EngineError
from engine.explain.identifiers import Identifiers
from engine.explain.lines import Line, Listing
from engine.explain.literals import array_text, attribute_text, inline_text, is_written, stored
from engine.ir.element_type import ElementType
from engine.ir.model import LOOP, SEQUENCE_MAP, TENSOR_ITERATOR, LayerId
from engine.run.plan import ABSENT, Branch, CallRegion, Concatenated, IfRegion, Instruction, LastValue, LoopRegion, Plan, Program
from engine.run.regions import UNLIMITED, empty_join, trip_count, truth
from engine.run.zeros import Zeros

_DEEPEST = 12
"""Bodies further in than this are left out: CPython refuses more than 20 loops in one another, and nobody reads them."""
_RESERVED = frozenset(
    {"np", "inf", "nan", "kernel", "iterations", "join", "part", "parts", "converted", "ElementType", "WEIGHTS", "VARIABLES"}
)
_HEADER = (
    "import numpy as np",
    "from numpy import inf, nan",
    "",
    "from engine.explain.running import ElementType, converted, iterations, join, kernel, part, parts",
    "",
)


_Part: TypeAlias = "Line | Iterator[_Part]"


def listing(plan: Plan, static: str = "main") -> Listing:
    """The code of the graph at a static address, as a function of its Parameters; a body's function is one iteration.

    ``AddressError`` when there is no such graph.
    """
    return _Writer(plan).listing(static)


def runnable(plan: Plan, static: str = "main", inputs: Sequence[np.ndarray] = ()) -> Listing:
    """The same as a whole Python file; ``WEIGHTS`` in it is read from ``weights.npz``, which holds ``weights``.

    With ``inputs``, the file calls its function with them and prints what it gives. ``EngineError`` when bodies lie too deep to be
    written in one function.
    """
    writer = _Writer(plan)
    body = writer.listing(static)
    if not body.complete:
        raise EngineError(f"bodies of {static} lie more than {_DEEPEST} deep: write them one by one")
    given = {f"input_{number}": value for number, value in enumerate(inputs)}
    weights = {**body.weights, **{name: stored(value) for name, value in given.items() if not is_written(value)}}
    name = next(line.text for line in body.lines if line.text.startswith("def "))[4:].partition("(")[0]
    call = f"    for output in {name}({', '.join(map(array_text, given, inputs))}):"
    foot = ["", "", 'if __name__ == "__main__":', call, "        print(output)"] if inputs else []
    head = [*_HEADER]
    if weights:
        head.append('WEIGHTS = np.load("weights.npz")')
    head += ["VARIABLES = {}", *(f"{name} = kernel({title!r})" for title, name in writer.kernels.items()), "", ""]
    return Listing((*map(Line, head), *body.lines, *map(Line, foot)), weights, True)


@dataclass(eq=False)
class _Writer:
    plan: Plan
    names: dict[int, str] = field(default_factory=dict[int, str])
    addresses: dict[int, str] = field(default_factory=dict[int, str])
    labels: dict[int, str] = field(default_factory=dict[int, str])
    types: dict[int, ElementType | None] = field(default_factory=dict[int, "ElementType | None"])
    kernels: dict[str, str] = field(default_factory=dict[str, str])
    constants: list[Line] = field(default_factory=list[Line])
    weights: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    identifiers: Identifiers = field(default_factory=lambda: Identifiers(_RESERVED))
    complete: bool = True

    @cached_property
    def propagated(self) -> Propagated:
        return propagate(self.plan.model, self.plan.catalogue)

    @cached_property
    def zeros(self) -> Zeros:
        return Zeros(self.plan.model, self.plan.catalogue)

    def listing(self, static: str) -> Listing:
        program = self.plan.program_by_address.get(static)
        if program is None:
            raise AddressError(f"there is no graph at {static}")
        lines: list[Line] = []
        stack: list[Iterator[_Part]] = [self._function(program)]
        while stack:
            found = next(stack[-1], None)
            if found is None:
                stack.pop()
            elif isinstance(found, Line):
                lines.append(found)
            else:
                stack.append(found)
        between = (Line(""), Line("")) if self.constants else ()
        return Listing((*self.constants, *between, *lines), self.weights, self.complete)

    # -- names and operands ---------------------------------------------------------------------------------------

    def _meet(self, program: Program) -> None:
        """Remembers label, address and type of every slot of a graph."""
        labels = {layer: label for label, layer in program.layer_of_label.items()}
        for (layer, output), slot in program.slots.items():
            if layer not in program.results and slot not in self.labels:
                self.labels[slot] = labels[layer] + (f"_{output}" if output else "")
                self.addresses[slot] = f"{program.address}/{labels[layer]}"
                self.types[slot] = self.propagated.output(program.address, layer, output).element_type

    def _new(self, slot: int) -> str:
        """The identifier that a slot is assigned to."""
        if slot not in self.names:
            self.names[slot] = self.identifiers.give(self.labels.get(slot, "value"))
        return self.names[slot]

    def _read(self, slot: int) -> str:
        """What stands for a slot's value."""
        if slot == ABSENT:
            return "None"
        if slot not in self.names and slot in self.plan.constant:
            value = self.plan.constant[slot]
            name = self._new(slot)
            if not is_written(value):
                self.weights[name] = stored(value)
            self.constants.append(Line(f"{name} = {array_text(name, value)}", self.addresses.get(slot, "")))
        return self._new(slot)

    def _operands(self, instruction: Instruction) -> list[str]:
        """The operands of an expression: small constants as plain numbers where another operand fixes their type."""
        fixing = {self.types.get(slot) for slot in instruction.inputs if slot not in self.plan.constant}
        texts: list[str] = []
        for slot in instruction.inputs:
            literal = inline_text(self.plan.constant[slot]) if slot in self.plan.constant and self.types.get(slot) in fixing else ""
            texts.append(literal or self._read(slot))
        return texts

    def _zeros(self, program: Program, layer: LayerId) -> str:
        return array_text("", self.zeros.result(program.address, layer))

    # -- graphs ---------------------------------------------------------------------------------------------------

    def _function(self, program: Program) -> Iterator[_Part]:
        self._meet(program)
        name = self.identifiers.give("_".join(program.address.split("/")[-2:]))
        parameters = [self._new(slot) for slot in program.parameters.values()]
        yield Line(f"def {name}({', '.join(parameters)}):")
        for number, slot in enumerate(self.plan.states):
            if slot in program.hidden:
                self.names[slot] = self.identifiers.give("state")
                yield Line(f"    {self.names[slot]} = {0x9E3779B97F4A7C15 * number % 2**63}")
        yield self._graph(program, 1)
        results = [self._read(slot) for slot in program.results.values()]
        if program.parent is None:
            results = [self._read(program.results[signature.layer]) for signature in self.plan.model.outputs]
        yield Line(f"    return ({', '.join(results)}{',' if len(results) == 1 else ''})")

    def _graph(self, program: Program, depth: int) -> Iterator[_Part]:
        self._meet(program)
        for instruction in program.instructions:
            address = f"{program.address}/{instruction.label}"
            match instruction.region:
                case None:
                    yield Line("    " * depth + self._operation(instruction), address)
                case _ if depth > _DEEPEST:
                    self.complete = False
                    yield Line("    " * depth + "...  # too deep to be shown here", address)
                case LoopRegion() as region:
                    yield self._loop(region, program, address, depth)
                case IfRegion() as region:
                    yield Line(f"{'    ' * depth}if {self._read(region.condition)}:", address)
                    yield self._branch(region.then, region.outputs, address, depth + 1)
                    yield Line(f"{'    ' * depth}else:", address)
                    yield self._branch(region.otherwise, region.outputs, address, depth + 1)
                case CallRegion() as region:
                    yield self._branch(region.branch, region.outputs, address, depth)

    def _operation(self, instruction: Instruction) -> str:
        targets = [self._new(slot) for slot in instruction.outputs]
        if instruction.variable is not None:
            return self._variable(instruction, targets)
        floats = {self.types.get(slot) for slot in instruction.inputs} in ({ElementType.F32}, {ElementType.F64})
        symbol = instruction.symbol or (instruction.float_symbol if floats else "")
        if symbol:
            return f"{targets[0]} = {symbol.format(*self._operands(instruction))}"
        arguments = [self._read(slot) for slot in instruction.inputs]
        arguments += [f"{name}={attribute_text(value)}" for name, value in _keywords(instruction).items()]
        made = ", ".join(targets) + ("," if instruction.several and len(targets) == 1 else "")
        if instruction.state is not None:
            state = self.names[instruction.state]
            arguments.append(f"state={state}")
            made = f"({made}), {state}" if instruction.several else f"{made}, {state}"
        name = self.kernels.get(instruction.title)
        if name is None:
            name = self.kernels[instruction.title] = self.identifiers.give(instruction.title)
        return f"{made} = {name}({', '.join(arguments)})" if targets else f"{name}({', '.join(arguments)})"

    def _variable(self, instruction: Instruction, targets: list[str]) -> str:
        name = repr(str(instruction.node.attributes.get("variable_id", "")))
        if instruction.title.startswith("Assign"):
            return " = ".join([*targets, f"VARIABLES[{name}]", self._read(instruction.inputs[0])])
        if not instruction.inputs:
            return f"{targets[0]} = VARIABLES[{name}]"
        return f"{targets[0]} = VARIABLES.get({name}, {self._read(instruction.inputs[0])})"

    def _branch(self, branch: Branch, outputs: tuple[int, ...], address: str, depth: int) -> Iterator[_Part]:
        self._meet(branch.program)
        pad = "    " * depth
        for parameter, source in branch.bindings:
            self.names[parameter] = self._read(source)
        for parameter, layer in branch.unfed:
            yield Line(f"{pad}{self._new(parameter)} = {self._zeros(branch.program, layer)}", address)
        yield self._graph(branch.program, depth)
        for slot, result in zip(outputs, branch.results, strict=False):
            yield Line(f"{pad}{self._new(slot)} = {self._read(result)}", address)
        if not outputs and not branch.program.instructions:
            yield Line(f"{pad}pass", address)

    # -- loops ----------------------------------------------------------------------------------------------------

    def _loop(self, region: LoopRegion, outer: Program, address: str, depth: int) -> Iterator[_Part]:
        if region.kind == SEQUENCE_MAP:
            raise EngineError(f"{address}: a SequenceMap is not written as code")
        self._meet(region.program)
        pad, inside = "    " * depth, "    " * (depth + 1)
        collected: dict[int, str] = {}
        for text in (*self._invariants(region), *self._before(region, collected)):
            yield Line(pad + text, address)
        number = self.identifiers.give("i")
        starts = region.condition is None or self._is_true(outer, region.condition)
        again = region.condition_result
        goes_on = again is None or self._is_true(region.program, again)
        go = "" if starts else self.identifiers.give("go")
        counts = bool(region.counters or region.sliced) or not self._is_unlimited(region)
        if go:
            yield Line(f"{pad}{go} = {self._read(region.condition or ABSENT)}", address)
        yield Line(pad + (f"for {number} in {self._count(region)}:" if counts else f"while {go or 'True'}:"), address)
        if go and counts:
            yield Line(f"{inside}if not {go}:", address)
            yield Line(f"{inside}    break", address)
        for text, place in self._beginning(region, number):
            yield Line(inside + text, place)
        yield self._graph(region.program, depth + 1)
        for text in self._end(region, collected):
            yield Line(inside + text, address)
        if not region.program.instructions and not region.outputs:
            yield Line(f"{inside}pass", address)
        if go and not goes_on and again is not None:
            yield Line(f"{inside}{go} = {self._read(again)}", address)
        for text in self._back_edges(region):
            yield Line(inside + text, address)
        if not goes_on and not go and again is not None:
            yield Line(f"{inside}if not {self._kept(region, again)}:", address)
            yield Line(f"{inside}    break", address)
        for text in self._after(region, collected):
            yield Line(pad + text, address)

    def _invariants(self, region: LoopRegion) -> Iterator[str]:
        """What comes in as it is needs no line of its own: inside it has the name that it has outside."""
        for parameter, source in region.invariants:
            text = self._entering(region, parameter, source, self._read(source))
            if text == self._read(source):
                self.names[parameter] = text
            else:
                yield f"{self._new(parameter)} = {text}"

    def _entering(self, region: LoopRegion, parameter: int, source: int | None, text: str) -> str:
        """What a Parameter receives from a slot outside; converted where a TensorIterator's Parameter declares another type."""
        wanted = region.declared.get(parameter)
        same = wanted is None or source is None or self.types.get(source) is wanted
        return text if same or wanted is None else f"converted({text}, {wanted.value!r})"

    def _before(self, region: LoopRegion, collected: dict[int, str]) -> Iterator[str]:
        """Initial values of what the loop carries, of its outputs, and empty lists for what it joins."""
        program = region.program
        for carried in region.carried:
            initial = self._zeros(program, carried.layer) if carried.initial is None else self._read(carried.initial)
            yield f"{self._new(carried.parameter)} = {self._entering(region, carried.parameter, carried.initial, initial)}"
        for parameter, layer in region.unfed:
            yield f"{self._new(parameter)} = {self._zeros(program, layer)}"
        for number, output in enumerate(region.outputs):
            name = self._new(output.slot)
            if isinstance(output, LastValue):
                yield f"{name} = {self._zeros(program, output.layer) if output.initial is None else self._read(output.initial)}"
            else:
                collected[number] = self.identifiers.give(f"all_{name}")
                yield f"{collected[number]} = []"

    def _count(self, region: LoopRegion) -> str:
        least = [self._parts(region, number) for number in range(len(region.sliced))]
        most = f"min({', '.join(least)})" if len(least) > 1 else least[0] if least else ""
        if region.kind != LOOP:
            fixed = next((one for one in region.outputs if isinstance(one, Concatenated) and one.start >= 0 and one.end >= 0), None)
            return f"range({most or (1 if fixed is None else (abs(fixed.end - fixed.start) + 1) // fixed.part_size)})"
        trips = None if region.trip_count is None else self.plan.constant.get(region.trip_count)
        count = UNLIMITED if region.trip_count is None else None if trips is None else self._trips(region, trips)
        if count is not None and count != UNLIMITED and not most:
            return f"range({count})"
        text = str(count) if count is not None else self._read(region.trip_count or ABSENT)
        text = text if region.negative_is_no_limit or count is not None else f"max(0, int({text}))"
        return f"iterations({text}, {most})" if most else f"iterations({text})"

    @staticmethod
    def _trips(region: LoopRegion, value: object) -> int:
        """A constant trip count; the largest i64, which some frameworks write for no limit, is none."""
        count = trip_count(value, negative_is_no_limit=region.negative_is_no_limit)
        return UNLIMITED if count == 2**63 - 1 else count

    def _is_unlimited(self, region: LoopRegion) -> bool:
        if region.kind != LOOP:
            return False
        if region.trip_count is None:
            return True
        trips = self.plan.constant.get(region.trip_count)
        return trips is not None and self._trips(region, trips) == UNLIMITED

    def _is_true(self, program: Program, slot: int) -> bool:
        value = self.plan.constant.get(slot)
        return value is not None and np.size(value) == 1 and truth(value)

    def _slicing(self, region: LoopRegion, number: int, *, count: bool) -> str:
        one = region.sliced[number]
        iterator = region.kind == TENSOR_ITERATOR
        asked: list[tuple[str, object, object]] = [("axis", one.axis, None), ("size", one.part_size, 1)]
        if count:
            asked += [("start", one.start, 0), ("end", one.end, -1)] if iterator else []
        else:
            start = one.start if iterator else -1 if one.stride < 0 else 0
            asked += [("start", start, 0), ("backwards", one.stride < 0, False), ("drop_axis", not one.whole_parts, False)]
        return ", ".join(f"{name}={value}" for name, value, usual in asked if value != usual)

    def _parts(self, region: LoopRegion, number: int) -> str:
        return f"parts({self._read(region.sliced[number].source)}, {self._slicing(region, number, count=True)})"

    def _beginning(self, region: LoopRegion, number: str) -> Iterator[tuple[str, str]]:
        for at, sliced in enumerate(region.sliced):
            cut = f"part({self._read(sliced.source)}, {number}, {self._slicing(region, at, count=False)})"
            text = f"{self._new(sliced.parameter)} = {self._entering(region, sliced.parameter, sliced.source, cut)}"
            yield text, self.addresses.get(sliced.parameter, "")
        for counter in region.counters:
            kind = f"np.{counter.element_type.dtype.name}"
            made = f"np.full({counter.shape!r}, {number}, {kind})" if counter.shape else f"{kind}({number})"
            yield f"{self._new(counter.parameter)} = {made}", self.addresses.get(counter.parameter, "")

    def _end(self, region: LoopRegion, collected: dict[int, str]) -> Iterator[str]:
        for number, output in enumerate(region.outputs):
            result = self._read(output.result)
            yield f"{collected[number]}.append({result})" if number in collected else f"{self._new(output.slot)} = {result}"

    def _kept(self, region: LoopRegion, slot: int) -> str:
        """The condition after the back edges have fired; set aside before when it is a carried value itself."""
        return self.names.get(-slot, self._read(slot))

    def _back_edges(self, region: LoopRegion) -> Iterator[str]:
        again = region.condition_result
        if again is not None and any(carried.parameter == again for carried in region.carried):
            self.names[-again] = self.identifiers.give("again")
            yield f"{self.names[-again]} = {self._read(again)}"
        pairs = [(self._new(carried.parameter), self._read(carried.result)) for carried in region.carried]
        moved = [(to, value) for to, value in pairs if to != value]
        if moved:
            yield f"{', '.join(to for to, _ in moved)} = {', '.join(value for _, value in moved)}"

    def _after(self, region: LoopRegion, collected: dict[int, str]) -> Iterator[str]:
        for number, output in enumerate(region.outputs):
            if isinstance(output, Concatenated):
                element_type, shape = self.zeros.known_result(region.program.address, output.layer)
                empty = array_text("", empty_join(output, shape, (element_type or ElementType.F32).dtype))
                more = "".join(f", {name}=True" for name in ("reverse", "stacked") if getattr(output, name))
                yield f"{self._new(output.slot)} = join({collected[number]}, {empty}, axis={output.axis}{more})"


def _keywords(instruction: Instruction) -> dict[str, Any]:
    """The attributes that are bound to an operation's kernel and are not what it takes anyway."""
    kernel = instruction.kernel
    if not isinstance(kernel, partial):
        return {}
    usual = getattr(kernel.func, "__kwdefaults__", None) or {}
    return {name: value for name, value in kernel.keywords.items() if name not in usual or usual[name] != value}
