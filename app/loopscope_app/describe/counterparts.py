"""Counterparts of operations and moments between the two runs of a comparison."""

from __future__ import annotations

from dataclasses import dataclass

import loopscope
from loopscope.errors import EngineError, counted
from loopscope.ir import Address
from loopscope.object_cache import cache_by_object
from loopscope.view import without_iterations
from loopscope_app.describe.both_runs import Drifted
from loopscope_app.describe.loop_execution import iteration_count, place_in_loop
from loopscope_app.describe.node_index import moment_of, places

ABSENT = "does not have this operation"


@dataclass(frozen=True, slots=True)
class Counterpart:
    """A place in the other run that matches a place in the run here."""

    address: str
    """Address with the iterations of the other run; empty if the other model lacks it, or if no
    place was requested.
    """
    step: int
    """Step in the other run."""
    note: str = ""
    """Reason why the place does not match exactly; empty if it does."""


def other_model(drifted: Drifted) -> loopscope.Model | None:
    """Return the model of the other run; None for a runtime, which has values only."""
    return drifted.other.model if drifted.other is not None else None


def counterpart(drifted: Drifted, address: str, step: int) -> Counterpart:
    """Return the place in the other run; ``step`` is the step of the place here."""
    other = drifted.other
    if other is None:
        return Counterpart("", 0, ABSENT)
    nearest = min(step, other.steps)
    spot = drifted.spot_at(address) if address else None
    if spot is not None:
        beside = drifted.drift.pairs[spot.pair].address_beside(other, spot.row)
        return Counterpart(beside, moment_of(other, beside))
    static = names_there(drifted).get(without_iterations(address), "") if address else ""
    if not static:
        if not address:
            return Counterpart("", nearest)
        return Counterpart("", _end_of_iteration(drifted, other, address, nearest), ABSENT)
    beside = at_moment(static, address)
    try:
        return Counterpart(beside, moment_of(other, beside))
    except EngineError:
        return _last_iteration(other, beside, nearest)


def _end_of_iteration(
    drifted: Drifted, other: loopscope.Debugger, address: str, otherwise: int
) -> int:
    """Return the last step in the other run of the innermost iteration or branch around a place;
    ``otherwise`` if no loop or If around it matches one that ran.
    """
    graph = address.rpartition("/")[0]
    while "/" in graph:
        owner, _, name = graph.rpartition("/")
        static = names_there(drifted).get(without_iterations(owner))
        if static:
            inside = Address.parse(at_moment(f"{static}/{name}/_", address))
            try:
                program, row = other.rows_of(inside)
            except EngineError:
                return otherwise
            return other.timeline.step_at(program, row, len(program.instructions))
        graph = owner.rpartition("/")[0]
    return otherwise


def _last_iteration(run: loopscope.Debugger, address: str, step: int) -> Counterpart:
    """Return the place in the last iteration of a run that has fewer iterations."""
    place = place_in_loop(address)
    count = iteration_count(run, place.loop) if place else 0
    if place is None or not 0 < count <= place.iteration:
        return Counterpart(address, step, "did not run")
    last = place.at(count - 1)
    note = f"only {counted(count, 'iteration')}; this is the last"
    try:
        return Counterpart(last, moment_of(run, last), note)
    except EngineError:
        return Counterpart(last, step, note)


def name_here(drifted: Drifted, static: str) -> str:
    """Return the operation here that matches one of the other model; empty if none does."""
    matches = names_there(drifted).items()
    return next((name for name, name_there in matches if name_there == static), "")


@cache_by_object
def names_there(drifted: Drifted) -> dict[str, str]:
    """Return the matching operation of the other model by static address.

    The matching of the compared values comes first. An operation whose value was not compared
    matches the one of the same address and type.
    """
    model, other, names = drifted.run.model, drifted.other, dict[str, str]()
    if other is None:
        return names
    for pair in drifted.drift.pairs:
        names.setdefault(without_iterations(pair.one), without_iterations(pair.other))
        graphs = pair.program.address, pair.beside.address
        if all("/" in graph for graph in graphs):
            names.setdefault(*(graph.rpartition("/")[0] for graph in graphs))
    unmatched = {without_iterations(place) for place in drifted.drift.unmatched[0]}
    places_there, taken = places(other.model), set(names.values())
    for address, place in places(model).items():
        same = places_there.get(address)
        is_free = address not in names and address not in unmatched and address not in taken
        if is_free and same is not None and same.node.type == place.node.type:
            names[address] = address
    return names


def at_moment(static: str, moment: str) -> str:
    """Return a static address with the iterations of a moment, loop by loop from the outside.

    >>> at_moment("main/loop/body/add", "main/while[2]/body/inner[4]/body/mul")
    'main/loop[2]/body/add'
    >>> at_moment("main/result", "main/while[2]/body/x")
    'main/result'
    """
    iterations = iter(number for number in Address.parse(moment).iterations if number is not None)
    labels = static.split("/")
    for index, label in enumerate(labels[1:], 1):
        if label == "body":
            labels[index - 1] += f"[{next(iterations, 0)}]"
    return "/".join(labels)
