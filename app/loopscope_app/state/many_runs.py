"""The screen Many runs: its inputs, and its sweep in a thread with the rows produced so far."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

import loopscope
from loopscope.errors import EngineError
from loopscope.sweeps import Samples, Sweep
from loopscope_app.state.launch import LAUNCH, limits

DATA, GRID, RANDOM_NUMBERS, FILE = "Data set", "Grid", "Random", "File"
KINDS = (DATA, GRID, RANDOM_NUMBERS, FILE)
"""Kinds of inputs; the data set is the one beside a sample."""
THE_DATA = "data"
"""Text that stands for the data set."""


@dataclass(slots=True)
class ManyRuns:
    """The sweeps of a session. Only ``loopscope_app.actions.running_many`` changes them."""

    has_begun: bool = False
    """True once the default inputs were run without a request."""
    words: str = ""
    """The requested inputs, in the syntax of ``loopscope sweep --inputs``."""
    file: str = ""
    """Name of the file with the inputs of the sweep; empty if they came from a text."""
    sweeping: Sweeping | None = None
    """The last sweep, running or finished."""
    against: Sweeping | None = None
    """The same inputs in another model, or with values rounded."""
    against_title: str = ""
    """Description of ``against``."""
    generation: int = 0
    """Part of the keys of widgets that start again with another sweep."""

    def forget(self) -> None:
        """Stop and drop all sweeps, because another model is opened or the session ends."""
        self.forget_comparison()
        if self.sweeping is not None:
            self.sweeping.stop()
        self.has_begun = False
        self.sweeping, self.words, self.file = None, "", ""
        self.generation += 1

    def forget_comparison(self) -> None:
        """Stop and drop the second sweep."""
        if self.against is not None:
            self.against.stop()
        self.against, self.against_title = None, ""

    @property
    def is_grid(self) -> bool:
        """True if the sweep covers all combinations of values."""
        return not self.file and self.words != THE_DATA and not self.words.startswith("random:")

    @property
    def sweeps(self) -> tuple[Sweeping, ...]:
        """All sweeps, in the order in which they began."""
        return tuple(sweep for sweep in (self.sweeping, self.against) if sweep is not None)

    @property
    def under_way(self) -> Sweeping | None:
        """The sweep that runs, or None."""
        return next((sweep for sweep in self.sweeps if not sweep.done()), None)

    @property
    def held_bytes(self) -> int:
        """Size of all rows."""
        return sum(sweep.held_bytes for sweep in self.sweeps)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one sweep."""

    rows: int
    seconds: float
    of_one_run: float
    """Time limit of one run in seconds."""
    most_bytes: int
    """Size limit of the rows."""
    workers: int | None = 1
    """Number of processes; None for one per core if the runs take long."""


_LOCAL = Bounds(rows=100_000, seconds=600.0, of_one_run=30.0, most_bytes=512 * 2**20, workers=None)
_PER_SESSION = Bounds(rows=20_000, seconds=60.0, of_one_run=10.0, most_bytes=32 * 2**20)


def bounds() -> Bounds:
    """Return the limits of a sweep; on a server they leave enough for other users."""
    return _PER_SESSION if LAUNCH.server else _LOCAL


class Sweeping:
    """Sweep of one model that starts at once. It ends with its inputs, at a limit, or by
    ``stop``.
    """

    def __init__(
        self,
        model: loopscope.Model,
        samples: Samples,
        within: Bounds,
        rounding: Mapping[str, str] | None = None,
    ) -> None:
        """Start the sweep. ``rounding`` maps address patterns to types.

        Raise ``EngineError`` for samples that do not fit the model.
        """
        self.model, self.samples, self.within = model, samples, within
        self.sweep: Sweep = loopscope.sweep(
            model,
            samples,
            limit=within.rows,
            workers=within.workers,
            limits=replace(limits(), seconds=within.of_one_run),
            rounding=rounding,
        )
        self.cut = ""
        """Reason why the sweep ended early; empty if it did not."""
        self.error: Exception | None = None
        self.held_bytes = 0
        self._batches: list[pa.RecordBatch] = []
        self._table: pa.Table = self.sweep.schema.empty_table()
        self._since, self._until = time.monotonic(), 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        alarm = threading.Timer(
            self.within.seconds, self.end, [f"{self.within.seconds:g} seconds are over"]
        )
        alarm.daemon = True
        alarm.start()
        try:
            for batch in self.sweep.batches():
                self._batches.append(batch)
                self.held_bytes += batch.nbytes
                if self.held_bytes > self.within.most_bytes:
                    self.end(f"its rows take {self.within.most_bytes >> 20} MB")
        except (
            Exception
        ) as error:  # an error of the engine or of Loopscope itself: the page shows which
            self.error = (
                error
                if not isinstance(error, MemoryError)
                else EngineError("There is not enough memory for these runs.")
            )
        finally:
            alarm.cancel()
            self._until = time.monotonic()

    def end(self, reason: str) -> None:
        """End the sweep early; finished rows stay."""
        self.cut = self.cut or reason
        self.sweep.stop()

    def stop(self) -> None:
        """End the sweep because its user stopped it."""
        self.end("it was stopped")

    def done(self, patience: float = 0) -> bool:
        """Wait at most ``patience`` seconds, and return True if the sweep ended."""
        self._thread.join(patience)
        return not self._thread.is_alive()

    @property
    def seconds(self) -> float:
        """Elapsed time."""
        return (self._until or time.monotonic()) - self._since

    @property
    def rows(self) -> pa.Table:
        """Finished rows."""
        if sum(map(len, self._batches)) != len(self._table):
            self._table = pa.Table.from_batches(
                tuple(self._batches), self.sweep.schema
            ).combine_chunks()
        return self._table
