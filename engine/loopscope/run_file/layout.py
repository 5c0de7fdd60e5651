"""Digest of the slots and instructions of a plan, to which a recording belongs."""

from __future__ import annotations

import hashlib
import json

from loopscope.executor.plan.plan import Plan, Program


def layout_of(plan: Plan) -> str:
    """Return a digest of the order of operations and the slots of their values.

    A recording with another digest cannot be restored, because its numbers mean other values.
    """
    digest = hashlib.sha256()
    for program in plan.programs:
        digest.update(json.dumps(_description(program)).encode())
    digest.update(
        json.dumps(
            [plan.slot_count, [slot for slot, _ in plan.constant_slots], list(plan.states)]
        ).encode()
    )
    return digest.hexdigest()


def _description(program: Program) -> list[object]:
    instructions = [
        [
            instruction.label,
            instruction.inputs,
            instruction.outputs,
            instruction.state,
            instruction.variable,
            instruction.region.table if instruction.region else None,
        ]
        for instruction in program.instructions
    ]
    carried = (
        [instruction.parameter for instruction in program.loop.carried] if program.loop else []
    )
    return [
        program.address,
        list(program.parameters.values()),
        list(program.results.values()),
        instructions,
        carried,
        program.hidden,
    ]
