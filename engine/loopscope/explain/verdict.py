"""Why a loop ended, or why an If took its branch: one sentence, and the chain of values that
proves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.debug.lookup import locate, must_have_begun
from loopscope.debug.run import Run, expect_run
from loopscope.debug.suggestions import region_number
from loopscope.errors import EngineError, elided, listed
from loopscope.executor.plan.body_ports import LastValue
from loopscope.executor.plan.plan import IfRegion, Instruction, LoopRegion, Program
from loopscope.explain.iteration_counts import ran_out, slice_facts, trip_count_name, trip_fact
from loopscope.explain.margin import Margin
from loopscope.explain.pattern import LARGEST_COUNTS, Pattern, pattern
from loopscope.explain.proof import Fact, because, is_constant, name_of, prove
from loopscope.ir.address import Address, decode
from loopscope.ir.iteration import iteration_words
from loopscope.ir.readable import readable
from loopscope.timeline.control_flow import ControlFlowRecord

_ENDED = ("zero_trip_count", "initial_condition", "slices_exhausted")


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one execution of a loop ended, or which branch an If took, and why."""

    address: str
    record: ControlFlowRecord
    pattern: Pattern | None
    """The pattern of a loop; None for an If."""
    declared: int | None
    """The trip count that the model gave, -1 for no limit; None for a loop without one, and for
    an If.
    """
    sentence: str
    proof: tuple[Fact, ...]
    """From the condition back to the operands that decided; or the trip count that was reached; or
    the inputs that ran out. Empty as long as the loop has not ended.
    """

    @property
    def margin(self) -> Margin | None:
        """Of the comparisons of floats in the proof the narrowest; None where it compares none."""
        return narrowest(self.proof)


def verdict(run: Run, address: str) -> Verdict:
    """The verdict on the execution of a loop or an If at an address such as
    ``main/outer[2]/body/inner``.

    Where the address leaves out an iteration, it is the one shown at the cursor.
    ``AddressError`` or ``ValueUnavailable`` when there is no such execution.
    """
    expect_run(run, "loopscope.verdict")
    program, row, instruction = _region(run, address)
    region, graph = instruction.region, run.timeline.address(program, row)
    place = f"{graph}/{instruction.label}"
    if isinstance(region, LoopRegion):
        return _of_loop(run, program, row, region, place)
    if not isinstance(region, IfRegion):
        raise EngineError(f"{address} is neither a loop nor an If")
    record = run.control_flow.record_of(region, row, place)
    proof = prove(run, program, row, region.condition)
    reason = _reason(proof, f"was {'true' if record.branch == 'then' else 'false'}")
    return Verdict(
        place,
        record,
        None,
        None,
        f"Took the {record.branch} branch because {reason}.{_narrowly(proof)}",
        proof,
    )


def narrowest(proof: Sequence[Fact]) -> Margin | None:
    """The margin of the comparison that the least change of its operands would turn; one that a
    narrower type turns goes first.
    """
    margins = (fact.margin for fact in proof if fact.margin is not None)
    return min(margins, key=lambda one: (not one.otherwise, one.distance), default=None)


def margin_at(run: Run, address: str) -> Margin | None:
    """How narrowly what is at an address was decided: the branch of an If, or a condition's value;
    None where it compares no floats.

    ``AddressError`` or ``ValueUnavailable`` when it has not been decided.
    """
    program, row, slot = locate(run.position, Address.parse(address))
    number = program.producer.get(slot)
    region = program.instructions[number].region if number is not None else None
    return narrowest(
        prove(run, program, row, region.condition if isinstance(region, IfRegion) else slot)
    )


def _narrowly(proof: Sequence[Fact]) -> str:
    """The sentence on a decision that a narrower type would turn; empty for any other."""
    found = narrowest(proof)
    return f" {found.sentence}" if found is not None and found.sentence else ""


def execution(run: Run, address: str) -> tuple[Program, int, LoopRegion, Instruction]:
    """The program and row in which a loop ran, and the loop."""
    program, row, instruction = _region(run, address)
    if not isinstance(instruction.region, LoopRegion):
        loops = _places(run, LoopRegion)
        there = f"the loops are {listed(loops)}" if loops else "this model has none"
        raise EngineError(f"{address} is of type {instruction.node.type}, and not a loop; {there}")
    return program, row, instruction.region, instruction


def _region(run: Run, address: str) -> tuple[Program, int, Instruction]:
    """The program and row in which a node with bodies ran, and the node."""
    parsed = Address.parse(address)
    program, row = run.rows_of(parsed)
    number = region_number(program, parsed.segments[-1].label)
    if number is None:
        raise _no_region(run, program, parsed.segments[-1].label)
    must_have_begun(run.timeline, program, row, number)
    return program, row, program.instructions[number]


def _places(run: Run, *kinds: type[LoopRegion | IfRegion]) -> list[str]:
    """Where the model has loops or Ifs."""
    return [
        f"{one.address}/{own.label}"
        for one, own in run.plan.regions
        if isinstance(own.region, kinds)
    ]


def _no_region(run: Run, program: Program, label: str) -> EngineError:
    """What is wrong with a place that is asked about as a loop or an If, and which ones there
    are.
    """
    place, name = readable(program.address), elided(decode(label))
    what = (
        f"{name!r} in {place} has no body"
        if label in program.layer_of_label
        else f"there is no {name!r} in {place}"
    )
    known = _places(run, LoopRegion, IfRegion)
    return EngineError(
        f"{what}; the loops and Ifs are {listed(known)}"
        if known
        else f"{what}; this model has no loop and no If"
    )


def _of_loop(run: Run, program: Program, row: int, region: LoopRegion, place: str) -> Verdict:
    record = run.control_flow.record_of(region, row, place)
    declared = _declared(run, program, row, region)
    proof = _proof(run, program, row, region, record)
    counted = "the trip count"
    if region.trip_count is not None:
        counted = trip_count_name(run, program, row, region.trip_count)
    failed = _failed_at(run, region) if record.ended_by == "error" else ""
    sentence = _sentence(
        record, declared, counted, proof, _endless(run, region) or run.failure or "", failed
    )
    sentence += _narrowly(proof)
    if not record.iterations and record.ended_by in _ENDED:
        sentence += _never_computed(region)
    return Verdict(
        place, record, pattern(run, Address.parse(place).static), declared, sentence, proof
    )


def _proof(
    run: Run, program: Program, row: int, region: LoopRegion, record: ControlFlowRecord
) -> tuple[Fact, ...]:
    """What decided that a loop ended: its condition, its trip count, or the inputs that ran out."""
    match record.ended_by:
        case "condition" if region.condition_result is not None:
            last = run.timeline.executions.rows_of(region, row)[1] - 1
            return prove(run, region.program, last, region.condition_result)
        case "initial_condition" if region.condition is not None:
            return prove(run, program, row, region.condition)
        case "trip_count" | "zero_trip_count" if region.trip_count is not None:
            return (trip_fact(run, program, row, region.trip_count),)
        case "slices_exhausted":
            return slice_facts(run, program, row, region)
        case _:
            return ()


def _failed_at(run: Run, region: LoopRegion) -> str:
    """Where in its body a loop failed, in words that go before the iteration."""
    frame = run.machine.frames[-1]
    if frame.position < len(frame.program.instructions):
        return f"at `{decode(frame.program.instructions[frame.position].label)}` in"
    return "at the end of" if frame.program is region.program else "in"


def _endless(run: Run, region: LoopRegion) -> str:
    """Why a running loop, or the running loop inside it, is proved never to end; empty without
    such a proof.
    """
    if run.endless is None:
        return ""
    program = run.machine.frames[-1].program
    if program is region.program or program.parent is None:
        return run.endless
    return f"`{decode(program.parent.instructions[program.owner].label)}` in it can never end, because {run.endless}"


def _reason(proof: tuple[Fact, ...], became: str) -> str:
    """What a condition became, and why: a clause that follows "because"."""
    if proof[0].by_hand or is_constant(proof):
        return proof[0].text
    reason = because(proof)
    return f"{name_of(proof[0])} {became}{f': {reason}' if reason else ''}"


def _never_computed(region: LoopRegion) -> str:
    """The sentence about outputs that have no initial value, for a loop that ended without an
    iteration.
    """
    missing = [
        number
        for number, output in enumerate(region.outputs)
        if isinstance(output, LastValue)
        and output.initial is None
        and output.carried_without_initial is None
    ]
    if not missing:
        return ""
    if len(region.outputs) == 1:
        return " Its output was never computed: it is zeros."
    numbers = " and ".join(filter(None, (", ".join(map(str, missing[:-1])), str(missing[-1]))))
    many = len(missing) > 1
    return f" Output{'s' if many else ''} {numbers} {'were' if many else 'was'} never computed: {'they are' if many else 'it is'} zeros."


def _declared(run: Run, program: Program, row: int, region: LoopRegion) -> int | None:
    if region.trip_count is None:
        return None
    return int(
        np.asarray(run.values.get(run.timeline, program, row, region.trip_count)).reshape(-1)[0]
    )


def _sentence(
    record: ControlFlowRecord,
    declared: int | None,
    counted: str,
    proof: tuple[Fact, ...],
    why: str,
    failed: str,
) -> str:
    """``counted``: the name of the trip count. ``why``: why the run stopped, or why the loop can
    never end. ``failed``: where it failed.
    """
    count = record.iterations or 0
    times = f"{count:,} iteration{'' if count == 1 else 's'}"
    most = "" if declared is None or is_no_limit(declared) else f" of at most {declared:,}"
    by_hand = bool(proof) and proof[0].by_hand
    match record.ended_by:
        case "condition":
            return f"Stopped after {times}{most} because {_reason(proof, 'became false')}."
        case "trip_count":
            set_to = f", which was set to {declared:,} by hand," if by_hand else ""
            return f"Ran {'its one iteration' if count == 1 else f'all {times}'}: {counted}{set_to} was reached."
        case "slices_exhausted":
            asked = (
                f", though {counted} asked for {declared:,}"
                if declared is not None and declared > count
                else ""
            )
            return (
                f"{f'Ran {times}' if count else 'Never started'}: {ran_out(proof, count)}{asked}."
            )
        case "zero_trip_count":
            if declared is not None and declared < 0:
                return f"Never started: {counted} is {declared}, which means no iteration in ONNX (and no limit in OpenVINO)."
            return f"Never started: {counted} {'was set to 0 by hand' if by_hand else 'is 0'}."
        case "initial_condition":
            if by_hand:
                return f"Never started because {proof[0].text}."
            reason = because(proof)
            alone = proof[0].text if is_constant(proof) else f"{name_of(proof[0])} was false"
            return f"Never started because the initial condition {f'was false: {reason}' if reason else alone}."
        case "limit" if record.endless:
            return f"Can never end: {why}. Paused after {times}{most}."
        case "limit":
            return f"Paused after {times}{most}: {why or 'a limit was reached'}."
        case "error":
            return f"Failed {failed} {iteration_words(count)}, after {times}{most}."
        case "stopped":
            return f"Stopped by hand after {times}{most}."
        case _:
            return f"Running: {times}{most} finished so far."


def is_no_limit(trip_count: int) -> bool:
    """Whether a trip count means no limit: negative, or the greatest i32 or i64, as some
    frameworks spell it.
    """
    return trip_count < 0 or trip_count in LARGEST_COUNTS
