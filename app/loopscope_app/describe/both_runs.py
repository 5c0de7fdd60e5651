"""Two runs beside each other, as data: runs on other inputs, of another model, or in a runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

import loopscope
from loopscope.comparison import Drift, Spot, StructureDiff
from loopscope.errors import EngineError
from loopscope.ir import Address


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
