"""What a recording depends on besides the model: which operations run in which order, and where
their values are.
"""

from __future__ import annotations

import hashlib
import json

from loopscope.executor.plan.plan import Plan, Program


def layout_of(plan: Plan) -> str:
    """A digest; a recording that was made under another one cannot be put back, because its
    numbers mean other values.
    """
    found = hashlib.sha256()
    for program in plan.programs:
        found.update(json.dumps(_told(program)).encode())
    found.update(
        json.dumps(
            [plan.slot_count, [slot for slot, _ in plan.constant_slots], list(plan.states)]
        ).encode()
    )
    return found.hexdigest()


def _told(program: Program) -> list[object]:
    instructions = [
        [
            one.label,
            one.inputs,
            one.outputs,
            one.state,
            one.variable,
            one.region.table if one.region else None,
        ]
        for one in program.instructions
    ]
    carried = [one.parameter for one in program.loop.carried] if program.loop else []
    return [
        program.address,
        list(program.parameters.values()),
        list(program.results.values()),
        instructions,
        carried,
        program.hidden,
    ]
