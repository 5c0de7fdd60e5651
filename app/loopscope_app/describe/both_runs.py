"""Two runs beside each other, as data: runs on other inputs, of another model, or in a runtime.

An operation or a moment of one run has a counterpart in the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

import loopscope
from loopscope.comparison import Drift, Spot, StructureDiff
from loopscope.errors import EngineError, counted
from loopscope.ir import Address
from loopscope.object_cache import cache_by_object
from loopscope.view import without_iterations
from loopscope_app.describe.loop_execution import iteration_count, place_in_loop
from loopscope_app.describe.node_index import moment_of, places


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Compared:
    """Two runs of one model for a comparison; the user steps through a third run."""

    name: str
    """Input set of the other run; empty for the previous inputs; ``UNCHANGED`` for the current
    inputs without changes.
    """
    run: loopscope.Debugger
    """The run here, on the current inputs."""
    other: loopscope.Debugger
    """The run on the inputs that ``name`` describes."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Drifted:
    """Differences between a run on the current inputs and another run, by value and iteration."""

    name: str
    """Kind of the comparison, a choice of the view Compare."""
    title: str
    """Description of the other run."""
    drift: Drift
    sentence: str
    run: loopscope.Debugger
    """The run here, on the current inputs."""
    other: loopscope.Debugger | None
    """The other run; None for a runtime, which has only ``values``."""
    values: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """Values from a runtime by address without iterations, one row for each row of the pair."""
    structure: StructureDiff | None = None
    """Differences of the structures of two models; None for one model, and for traces."""

    def there(self, spot: Spot) -> np.ndarray:
        """Return the other run's value. Raise ``EngineError`` if it is neither stored nor
        computable.
        """
        pair = self.drift.pairs[spot.pair]
        if self.other is None and pair.one not in self.values:
            raise EngineError(
                f"{self.title} returned only a fingerprint of this value, which is too large to be "
                "compared whole; the fingerprints agree"
            )
        if self.other is None:
            return np.asarray(self.values[pair.one][spot.row])
        return self.other.value(pair.address_beside(self.other, spot.row))

    def address_there(self, address: str) -> str:
        """Return the place in the other run that matches a place in a loop here.

        Models with the same names have the same addresses.
        """
        graph, _, label = address.rpartition("/")
        static = Address.parse(f"{graph}/x").static.rpartition("/")[0]
        pairs = (pair for pair in self.drift.pairs if pair.program.address == static)
        pair = next(pairs, None)
        if self.other is None or pair is None or pair.program.address == pair.beside.address:
            return address
        rows = pair.rows.left.tolist()
        row = next(
            (
                index
                for index, number in enumerate(rows)
                if self.run.timeline.address(pair.program, number) == graph
            ),
            0,
        )
        beside = pair.address_beside(self.other, row).rpartition("/")[0]
        return f"{beside}/{label}"

    def spot_at(self, address: str) -> Spot | None:
        """Return the compared value at a place of the run here; None if it was not compared."""
        parsed = Address.parse(address)
        pairs = enumerate(self.drift.pairs)
        number = next((index for index, pair in pairs if pair.one == parsed.static), None)
        if number is None:
            return None
        try:
            _, row = self.run.rows_of(parsed)
        except EngineError:
            return None
        rows = np.flatnonzero(self.drift.pairs[number].rows.left == row)
        return Spot(number, int(rows[0])) if len(rows) else None


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
