"""Verdict: why a loop ended or an If took its branch, with the chain of values that proves it.

About the loops and decisions of a trace it says what the recorder knows, without proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.debug.lookup import locate, must_have_begun, region_number
from loopscope.debug.run import Run, expect_run
from loopscope.errors import EngineError, elided, listed
from loopscope.executor.plan.body_ports import LastValue
from loopscope.executor.plan.plan import IfRegion, Instruction, LoopRegion, Program
from loopscope.explain.facts import (
    Fact,
    Margin,
    because,
    is_constant,
    name_of,
    ran_out,
    slice_facts,
    trip_count_name,
    trip_fact,
)
from loopscope.explain.pattern import LARGEST_COUNTS, Pattern, pattern
from loopscope.explain.proof import prove
from loopscope.ir.address import Address, decode
from loopscope.ir.readable import iteration_words, readable
from loopscope.ir.recorded_rows import RecordedEnding, is_trace, recorded_ending
from loopscope.timeline.timeline import ControlFlowRecord

_ENDINGS_WITHOUT_ITERATION = ("zero_trip_count", "initial_condition", "slices_exhausted")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Ending of one loop execution, or branch of an If, and the reason."""

    address: str
    record: ControlFlowRecord
    pattern: Pattern | None
    """Pattern of a loop; None for an If."""
    declared: int | None
    """Trip count given by the model, -1 for no limit; None for an If or a loop without trip
    count.
    """
    sentence: str
    proof: tuple[Fact, ...]
    """Facts from the condition back to the operands that decided; empty while the loop is running.

    For other endings: the trip count that was reached, or the inputs that ran out.
    """

    @property
    def margin(self) -> Margin | None:
        """Narrowest margin of the float comparisons in the proof; None without float
        comparisons.
        """
        return narrowest(self.proof)


def verdict(run: Run, address: str) -> Verdict:
    """Return the verdict on the execution of a loop or If at an address such as
    ``main/outer[2]/body/inner``.

    An omitted iteration is the one at the cursor. Raise ``AddressError`` or ``ValueUnavailable`` if
    the execution does not exist.
    """
    expect_run(run, "loopscope.verdict")
    program, row, instruction = _region_execution(run, address)
    region, graph = instruction.region, run.timeline.address(program, row)
    place = f"{graph}/{instruction.label}"
    if isinstance(region, LoopRegion):
        if (ending := recorded_ending(instruction.node, row)) is not None:
            record = run.control_flow.record_of(region, row, place)
            sentence = ending_sentence(ending, record)
            shape = pattern(run, Address.parse(place).static)
            return Verdict(place, record, shape, ending.total, sentence, ())
        return _loop_verdict(run, program, row, region, place)
    if not isinstance(region, IfRegion):
        raise EngineError(f"{address} is neither a loop nor an If")
    record = run.control_flow.record_of(region, row, place)
    if is_trace(run.model):
        return Verdict(place, record, None, None, decision_sentence(record), ())
    proof = prove(run, program, row, region.condition)
    reason = _reason(proof, f"was {'true' if record.branch == 'then' else 'false'}")
    return Verdict(
        place,
        record,
        None,
        None,
        f"Took the {record.branch} branch because {reason}.{_narrow_margin_sentence(proof)}",
        proof,
    )


def narrowest(proof: Sequence[Fact]) -> Margin | None:
    """Return the margin that the smallest change of operands would turn.

    A margin that a narrower type turns is preferred. Return None without float comparisons.
    """
    margins = (fact.margin for fact in proof if fact.margin is not None)
    return min(margins, key=lambda margin: (not margin.otherwise, margin.distance), default=None)


def margin_at(run: Run, address: str) -> Margin | None:
    """Return the margin by which an If's branch, or the condition at an address, was decided.

    Return None without float comparisons. Raise ``AddressError`` or ``ValueUnavailable`` if it has
    not been decided.
    """
    program, row, slot = locate(run.position, Address.parse(address))
    number = program.producer.get(slot)
    region = program.instructions[number].region if number is not None else None
    return narrowest(
        prove(run, program, row, region.condition if isinstance(region, IfRegion) else slot)
    )


def _narrow_margin_sentence(proof: Sequence[Fact]) -> str:
    """Return a sentence about a decision that a narrower type would turn; empty otherwise."""
    margin = narrowest(proof)
    return f" {margin.sentence}" if margin is not None and margin.sentence else ""


def execution(run: Run, address: str) -> tuple[Program, int, LoopRegion, Instruction]:
    """Return program, row, loop region and instruction of the loop execution at an address."""
    program, row, instruction = _region_execution(run, address)
    if not isinstance(instruction.region, LoopRegion):
        loops = _region_addresses(run, LoopRegion)
        known = f"the loops are {listed(loops)}" if loops else "this model has none"
        raise EngineError(f"{address} is of type {instruction.node.type}, and not a loop; {known}")
    return program, row, instruction.region, instruction


def _region_execution(run: Run, address: str) -> tuple[Program, int, Instruction]:
    """Return program, row and instruction of an executed node with bodies."""
    parsed = Address.parse(address)
    program, row = run.rows_of(parsed)
    number = region_number(program, parsed.segments[-1].label)
    if number is None:
        raise _missing_region_error(run, program, parsed.segments[-1].label)
    must_have_begun(run.timeline, program, row, number)
    return program, row, program.instructions[number]


def _region_addresses(run: Run, *kinds: type[LoopRegion | IfRegion]) -> list[str]:
    """Return the static addresses of all loops or Ifs of the model."""
    return [
        f"{program.address}/{instruction.label}"
        for program, instruction in run.plan.regions
        if isinstance(instruction.region, kinds)
    ]


def _missing_region_error(run: Run, program: Program, label: str) -> EngineError:
    """Return an error that names the missing loop or If and lists the existing ones."""
    place, name = readable(program.address), elided(decode(label))
    problem = (
        f"{name!r} in {place} has no body"
        if label in program.layer_of_label
        else f"there is no {name!r} in {place}"
    )
    known = _region_addresses(run, LoopRegion, IfRegion)
    return EngineError(
        f"{problem}; the loops and Ifs are {listed(known)}"
        if known
        else f"{problem}; this model has no loop and no If"
    )


def _loop_verdict(run: Run, program: Program, row: int, region: LoopRegion, place: str) -> Verdict:
    record = run.control_flow.record_of(region, row, place)
    declared = _declared(run, program, row, region)
    proof = _proof(run, program, row, region, record)
    counted = "the trip count"
    if region.trip_count is not None:
        counted = trip_count_name(run, program, row, region.trip_count)
    failed = _failed_at(run, region) if record.ended_by == "error" else ""
    sentence = _sentence(
        record, declared, counted, proof, _endless_reason(run, region) or run.failure or "", failed
    )
    sentence += _narrow_margin_sentence(proof)
    if not record.iterations and record.ended_by in _ENDINGS_WITHOUT_ITERATION:
        sentence += _uncomputed_outputs(region)
    return Verdict(
        place, record, pattern(run, Address.parse(place).static), declared, sentence, proof
    )


def _proof(
    run: Run, program: Program, row: int, region: LoopRegion, record: ControlFlowRecord
) -> tuple[Fact, ...]:
    """Return the facts that ended a loop: its condition, its trip count, or exhausted inputs."""
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
    """Return the position in the body at which a loop failed, as words to place before the
    iteration.
    """
    frame = run.machine.frames[-1]
    if frame.position < len(frame.program.instructions):
        return f"at `{decode(frame.program.instructions[frame.position].label)}` in"
    return "at the end of" if frame.program is region.program else "in"


def _endless_reason(run: Run, region: LoopRegion) -> str:
    """Return why a running loop, or the loop running inside it, is proved endless; empty without a
    proof.
    """
    if run.endless is None:
        return ""
    program = run.machine.frames[-1].program
    if program is region.program or program.parent is None:
        return run.endless
    inner = decode(program.parent.instructions[program.owner].label)
    return f"`{inner}` in it can never end, because {run.endless}"


def _reason(proof: tuple[Fact, ...], became: str) -> str:
    """Return a clause, to follow "because", about the result of a condition and its reason."""
    if proof[0].by_hand or is_constant(proof):
        return proof[0].text
    reason = because(proof)
    return f"{name_of(proof[0])} {became}{f': {reason}' if reason else ''}"


def _uncomputed_outputs(region: LoopRegion) -> str:
    """Return a sentence about outputs without initial value, for a loop that ended before its first
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
    if len(missing) > 1:
        return f" Outputs {numbers} were never computed: they are zeros."
    return f" Output {numbers} was never computed: it is zeros."


def _declared(run: Run, program: Program, row: int, region: LoopRegion) -> int | None:
    """Return the trip count; None if the loop has none, also from a call that leaves it out."""
    if region.trip_count is None:
        return None
    count = run.values.get(run.timeline, program, row, region.trip_count)
    return None if count is None else int(np.asarray(count).reshape(-1)[0])


def _sentence(
    record: ControlFlowRecord,
    declared: int | None,
    counted: str,
    proof: tuple[Fact, ...],
    why: str,
    failed: str,
) -> str:
    """Return the verdict as a sentence.

    ``counted``: name of the trip count. ``why``: why the run stopped, or why the loop can never
    end. ``failed``: position of the failure.
    """
    count = record.iterations or 0
    times = f"{count:,} iteration{'' if count == 1 else 's'}"
    limit = "" if declared is None or is_no_limit(declared) else f" of at most {declared:,}"
    by_hand = bool(proof) and proof[0].by_hand
    match record.ended_by:
        case "condition":
            return f"Stopped after {times}{limit} because {_reason(proof, 'became false')}."
        case "trip_count":
            set_to = f", which was set to {declared:,} by hand," if by_hand else ""
            all_of_them = "its one iteration" if count == 1 else f"all {times}"
            return f"Ran {all_of_them}: {counted}{set_to} was reached."
        case "slices_exhausted":
            requested = (
                f", though {counted} is {declared:,}"
                if declared is not None and declared > count
                else ""
            )
            start = f"Ran {times}" if count else "Never started"
            return f"{start}: {ran_out(proof, count)}{requested}."
        case "zero_trip_count":
            return _zero_trip_count_sentence(declared, counted, by_hand=by_hand)
        case "initial_condition":
            return _initial_condition_sentence(proof)
        case "limit" if record.endless:
            return f"Can never end: {why}. Paused after {times}{limit}."
        case "limit":
            return f"Paused after {times}{limit}: {why or 'a limit was reached'}."
        case "error":
            return f"Failed {failed} {iteration_words(count)}, after {times}{limit}."
        case "stopped":
            return f"Stopped by hand after {times}{limit}."
        case _:
            return f"Running: {times}{limit} finished so far."


def _zero_trip_count_sentence(declared: int | None, counted: str, *, by_hand: bool) -> str:
    if declared is not None and declared < 0:
        return (
            f"Never started: {counted} is {declared}, "
            f"which means no iteration in ONNX (and no limit in OpenVINO)."
        )
    return f"Never started: {counted} {'was set to 0 by hand' if by_hand else 'is 0'}."


def _initial_condition_sentence(proof: tuple[Fact, ...]) -> str:
    if proof and proof[0].by_hand:
        return f"Never started because {proof[0].text}."
    reason = because(proof)
    alone = proof[0].text if is_constant(proof) else f"{name_of(proof[0])} was false"
    clause = f"was false: {reason}" if reason else alone
    return f"Never started because the initial condition {clause}."


def is_no_limit(trip_count: int) -> bool:
    """Return True if a trip count means no limit: negative, or the largest i32 or i64, as in some
    frameworks.
    """
    return trip_count < 0 or trip_count in LARGEST_COUNTS


def ending_sentence(ending: RecordedEnding, record: ControlFlowRecord) -> str:
    """Return the verdict on a loop of a trace as a sentence."""
    count, total = record.iterations or 0, ending.total
    times = f"{count:,} iteration{'' if count == 1 else 's'}"
    counted = f"{count:,} of {total:,} iterations" if total is not None else times
    if not ending.executed:
        return "Did not run: the program did not reach this loop."
    if record.ended_by is None or record.ended_by in ("limit", "stopped"):
        return f"Running: {times} shown so far."
    if not ending.complete:
        return f"The recording ends after {counted}."
    if ending.reason:
        return f"Ended after {counted}: {ending.reason}."
    if record.ended_by == "condition":
        return f"Ended after {counted}: the program left the loop."
    return f"Ran all {times}." if count != 1 else "Ran its one iteration."


def decision_sentence(record: ControlFlowRecord) -> str:
    """Return the verdict on a decision of a trace as a sentence."""
    value = "true" if record.branch == "then" else "false"
    return f"Took the {record.branch} branch: the decision was recorded as {value}."
