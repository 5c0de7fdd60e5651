"""Lookup of rows, slots and names by address, and suggestions of similar names."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from loopscope.debug.position import OpenGraph, Position, Scene, address_of
from loopscope.errors import AddressError, ExpressionError, ValueUnavailable, elided
from loopscope.executor.plan.plan import ABSENT, IfRegion, Instruction, LoopRegion, Program, Region
from loopscope.executor.plan.slots import Slot
from loopscope.ir.address import ANY_ITERATION, ROOT, Address, Segment, decode, encode
from loopscope.ir.address_search import ambiguous, ending, split_output, without_iterations
from loopscope.ir.readable import as_written, readable, static_words
from loopscope.object_cache import cache_by_object
from loopscope.timeline.timeline import Timeline

# -- addresses


def locate(position: Position, address: Address) -> tuple[Program, int, Slot]:
    """Return the program, row and slot of a computed value; ``ValueUnavailable`` if it was not
    computed.
    """
    program, row = graph_row(position, address)
    slot = slot_at(program, address)
    _must_be_needed(position, slot, address)
    _must_have_run(position, program, row, slot, address)
    return program, row, slot


def region_at(position: Position, address: Address) -> tuple[Program, int, Instruction]:
    """Return the graph, row and instruction of a Loop, TensorIterator or If; ``ValueUnavailable``
    before it begins.
    """
    if not address.names_a_graph:
        program, row = graph_row(position, address)
        number = region_number(program, address.segments[-1].label)
        if number is not None:
            must_have_begun(position.timeline, program, row, number)
            return program, row, program.instructions[number]
    raise AddressError(f"{elided(str(address), 200)} names no Loop, TensorIterator or If")


def graph_row(position: Position, address: Address) -> tuple[Program, int]:
    """Return the graph that contains the node of an address, and the row that the address names."""
    if address.names_a_graph:
        raise AddressError(
            f"{elided(str(address), 200)} names a graph, not a value: add the name of a node"
        )
    program, row = position.plan.main, 0
    for owner, body in zip(address.segments[1:-1:2], address.segments[2::2], strict=True):
        program, row = _body_row(position, program, row, owner, body.label)
    return program, row


def must_have_begun(timeline: Timeline, program: Program, row: int, number: int) -> None:
    """Raise ``ValueUnavailable`` for a node with bodies that did not begin in a row."""
    if row >= timeline.executions.calls(program, number):
        label = program.instructions[number].label
        raise ValueUnavailable(
            f"{decode(label)!r} in {readable(timeline.address(program, row))} has not run yet"
        )


def slot_at(program: Program, address: Address) -> Slot:
    """Return the slot of the last node of an address, in its graph."""
    segment = address.segments[-1]
    layer = program.layer_of_label.get(segment.label)
    if layer is None:
        names = near(segment.label, list(program.layer_of_label))
        raise AddressError(
            f"there is no {elided(decode(segment.label))!r} in {readable(program.address)}; "
            f"it has {names}"
        )
    slot = program.slots.get((layer, address.output))
    if slot is None:
        raise AddressError(
            f"{decode(segment.label)!r} in {readable(program.address)} "
            f"has no output {address.output}"
        )
    if slot == ABSENT:
        raise ValueUnavailable(
            f"nothing feeds {decode(segment.label)!r} in {readable(program.address)}"
        )
    return slot


def _body_row(
    position: Position, program: Program, row: int, segment: Segment, body: str
) -> tuple[Program, int]:
    """Return the row of a body in one row of the enclosing graph."""
    number = region_number(program, segment.label)
    if number is None:
        raise AddressError(
            f"there is no {decode(segment.label)!r} with a body in {readable(program.address)}"
        )
    must_have_begun(position.timeline, program, row, number)
    region = program.instructions[number].region
    assert region is not None
    if segment.iteration not in (None, ANY_ITERATION) and not isinstance(region, LoopRegion):
        name = decode(segment.label)
        raise AddressError(
            f"{name!r} in {readable(program.address)} is not a loop, "
            f"and so has no iteration {segment.iteration}"
        )
    inner = body_of(region, body)
    if inner is None:
        raise AddressError(
            f"{decode(segment.label)!r} in {readable(program.address)} has no body {body!r}"
        )
    match region:
        case LoopRegion():
            return inner, _loop_row(position, region, row, segment)
        case IfRegion():
            branches, rows = position.timeline.executions.branch_rows(region)
            executed = region.then.program if branches[row] else region.otherwise.program
            if executed is not inner:
                name = decode(segment.label)
                raise ValueUnavailable(
                    f"the {body} branch of {name!r} did not run there: "
                    f"its condition chose {executed.branch_name}"
                )
            return inner, int(rows[row])
        case _:
            return inner, row


def _loop_row(position: Position, region: LoopRegion, execution: int, segment: Segment) -> int:
    first, end = position.timeline.executions.rows_of(region, execution)
    if first == end:
        raise ValueUnavailable(
            f"the body of {decode(segment.label)!r} never ran: it has zero iterations"
        )
    if segment.iteration is None or segment.iteration == ANY_ITERATION:
        visible = position.scene.shown.get(region.program.index)
        return visible.row if visible is not None and first <= visible.row < end else end - 1
    if segment.iteration >= end - first:
        raise ValueUnavailable(
            f"iteration {segment.iteration} of {decode(segment.label)!r} has not run: "
            f"there are {end - first} so far, counted from 0"
        )
    return first + segment.iteration


def iteration_rows(position: Position, address: Address) -> tuple[Program, Slot, int, int]:
    """Return the program, the slot, the first row and the end row of a place over all iterations of
    the innermost loop.
    """
    program, row = graph_row(position, address)
    slot = slot_at(program, address)
    _must_be_needed(position, slot, address)
    region = program.region
    if not isinstance(region, LoopRegion):
        raise AddressError(
            f"{readable(str(address))} is not directly in a loop body: "
            "only values in a loop body have a value for each iteration"
        )
    execution, _ = position.timeline.executions.parent_row(program, row)
    first, end = position.timeline.executions.rows_of(region, execution)
    return (
        program,
        slot,
        first,
        end if has_run(position.timeline, program, end - 1, slot) else end - 1,
    )


def has_run(timeline: Timeline, program: Program, row: int, slot: Slot) -> bool:
    """Return True if the instruction that fills a slot has run in a row that has begun."""
    executions = timeline.executions
    frame = executions.open.get(program.index)
    number = program.producer.get(slot)
    return (
        number is None
        or frame is None
        or row < executions.rows[program.index] - 1
        or number < frame.position
    )


def _must_be_needed(position: Position, slot: Slot, address: Address) -> None:
    """Raise ``ValueUnavailable`` in a pruned run if no fetched tensor needs the value."""
    live = position.plan.live
    if live is not None and slot not in live:
        raise ValueUnavailable(
            f"{readable(str(address))} is not needed for what is fetched, and so it did not run"
        )


def _must_have_run(
    position: Position, program: Program, row: int, slot: Slot, address: Address
) -> None:
    if not has_run(position.timeline, program, row, slot):
        frame = position.timeline.executions.open[program.index]
        number = program.producer[slot]
        failed = (
            position.machine.state == "failed"
            and number == frame.position
            and frame is position.machine.frames[-1]
        )
        raise ValueUnavailable(
            f"{readable(str(address))} {'failed' if failed else 'has not run yet'}"
        )


def resolve(position: Position, place: str) -> str | None:
    """Return the address of the value that a place shows at the cursor.

    Each loop shows the iteration that the place names, else the current one.
    """
    scene: Scene | None = position.scene
    if "[" in place:
        parsed = Address.parse(place)
        scene, place = _with_iterations(position, position.scene, parsed), parsed.static
    if scene is None:
        return None
    graph, _, label = place.rpartition("/")
    program = position.plan.program_by_address.get(graph)
    visible = scene.shown.get(program.index) if program else None
    if program is None or visible is None or label not in program.layer_of_label:
        return None
    if scene.waits(program, label):
        return None
    return f"{position.timeline.address(program, visible.row)}/{label}"


def _with_iterations(position: Position, scene: Scene, address: Address) -> Scene | None:
    """Return the scene with the iterations that an address names; None if one of them begins after
    the cursor.
    """
    static = ROOT
    for owner, body in zip(address.segments[1::2], address.segments[2::2], strict=False):
        static = f"{static}/{owner.label}/{body.label}"
        if owner.iteration is None or owner.iteration == ANY_ITERATION:
            continue
        program = position.plan.program_by_address.get(static)
        visible = scene.shown.get(program.index) if program is not None else None
        if program is None or program.parent is None or visible is None:
            return None
        region = program.region
        if not isinstance(region, LoopRegion):
            return None
        row = (
            position.timeline.executions.rows_of(region, scene.shown[program.parent.index].row)[0]
            + owner.iteration
        )
        if row > visible.row:
            return None
        scene = scene if row == visible.row else scene.with_row(program, row)
    return scene


def open_graphs(position: Position) -> tuple[OpenGraph, ...]:
    """Return the graphs of a moment, outermost first."""
    graphs: list[OpenGraph] = []
    levels = position.levels
    for depth, (program, iteration, _) in enumerate(levels):
        bound = bound_of(position, program) if iteration is not None else None
        graphs.append(OpenGraph(address_of(levels[: depth + 1]), program.address, iteration, bound))
    return tuple(graphs)


def bound_of(position: Position, program: Program) -> int | None:
    """Return the maximum iteration count of the open execution of a loop body; None for no
    limit.
    """
    frame = next((frame for frame in position.machine.frames if frame.program is program), None)
    if frame is not None:
        return frame.bound if frame.bound < 1 << 62 else None
    scene = position.scene
    visible = scene.shown.get(program.index)
    if visible is None:
        return None
    execution, _ = position.timeline.executions.parent_row(program, visible.row)
    assert program.parent is not None
    region = program.region
    assert isinstance(region, LoopRegion)
    first, end = position.timeline.executions.rows_of(region, execution)
    return end - first


def region_number(program: Program, label: str) -> int | None:
    """Return the number of the instruction of a node with bodies; None for an unknown node."""
    return next(
        (number for number in program.regions if program.instructions[number].label == label), None
    )


def body_of(region: Region, name: str) -> Program | None:
    """Return the nested graph of that name (``body``, ``then``, ``else``); None for an unknown
    name.
    """
    return next((program for program in region.programs if program.branch_name == name), None)


def slot_of(program: Program, name: str) -> Slot | None:
    """Return the slot of the value that a name in a condition refers to; None for an unknown
    name.
    """
    label, _, output = (label_of(program, name) or "").partition(":")
    slot = (
        program.slots.get((program.layer_of_label[label], int(output or 0)), ABSENT)
        if label
        else ABSENT
    )
    return None if slot == ABSENT else slot


def label_of(program: Program, name: str) -> str | None:
    """Return the label of a node in addresses, with ``:1`` after it for another output than the
    first; None for an unknown node.

    ``name`` is the node's name, as addresses or screens write it, or an end of it (``Gather_0`` of
    ``attn/Gather_0``) if no enclosing graph has a node of exactly that name. Raises
    ``ExpressionError`` if several nodes of the graph have that end.
    """
    exact = _find_exactly(program, name)
    if exact is not None or name.startswith(f"{ROOT}/"):
        return exact
    return _find_by_ending(program, name)


@cache_by_object  # conditions are evaluated at every step
def _find_by_ending(program: Program, name: str) -> str | None:
    if any(_find_exactly(outer, name) for outer in program.around()):
        return None
    text, output = split_output(as_written(name.strip()))
    if without_iterations(text) != text:
        return None
    prefix = f"{program.address}/"
    ends = ending(
        [prefix + label for label in program.layer_of_label], text, static_words(name.strip())
    )
    if len(ends) > 1:
        raise ExpressionError(ambiguous(name, ends))
    return "".join(ends).removeprefix(prefix) + output if ends else None


def _find_exactly(program: Program, name: str) -> str | None:
    if name in program.layer_of_label:
        return name
    if name.isidentifier():
        return None
    if (label := encode(name)) in program.layer_of_label:
        return label
    stem, _, output = name.rpartition(":")
    label = stem if stem in program.layer_of_label else encode(stem)
    return (
        f"{label}:{output}"
        if output.isdecimal() and len(output) < 10 and label in program.layer_of_label
        else None
    )


def value_names(program: Program) -> Mapping[Slot, str]:
    """Return the name of each slot in addresses: its node, with ``:1`` after it for another output
    than the first.
    """
    labels = {layer: label for label, layer in program.layer_of_label.items()}
    return {
        slot: labels[layer] + (f":{output}" if output else "")
        for (layer, output), slot in program.slots.items()
        if layer not in program.results
    }


def near(label: str, names: list[str]) -> str:
    """List names that are similar to an unknown name, for an error message."""
    matches = get_close_matches(label[:60], names[:5000], 3, 0.4) or names[:3]
    return ", ".join(repr(decode(name)[:60]) for name in matches) or "no operations"
