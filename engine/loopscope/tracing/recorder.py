"""Recording of the loops of a program into a trace file."""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import msgspec
import numpy as np

from loopscope.errors import InputError, shorten
from loopscope.ir.element_type import ElementType
from loopscope.ir.recorded_rows import MOST_SAMPLES
from loopscope.tracing import trace_format as form
from loopscope.tracing.foreign_arrays import as_numpy
from loopscope.tracing.trace_format import BlockWriter, fingerprint

SWITCH = "LOOPSCOPE_TRACE"
"""Environment variable that switches every trace off when it is ``0``."""
DEFAULT_BUDGET = 1024
"""Megabytes of tensors that a trace stores exactly."""
_PLAIN_TYPES = frozenset({bool, int, float})
_RESERVED = frozenset({"self", "carried"})
"""Names that ``record`` cannot take as keywords."""
_INLINE_BYTES = 1 << 14
"""Size from which a tensor is a block of its own."""
_BUFFERED_EVENTS, _BUFFERED_BYTES = 4096, 1 << 20
_SECONDS_BETWEEN_WRITES = 0.05
_EVENTS_PER_BLOCK = 65_536
Item = TypeVar("Item")


class Trace(Protocol):
    """A recorder of loops, or its stand-in that does nothing."""

    def iterations(self, name: str, iterable: Iterable[Item]) -> Iterable[Item]:
        """Return the items of ``iterable``, and record an iteration of loop ``name`` for each."""
        ...

    def loop(self, name: str) -> Any:
        """Return a context for one turn of the loop ``name``, such as the body of a ``while``."""
        ...

    def record(self, /, *, carried: str | Sequence[str] = (), **values: Any) -> None:
        """Record values of the current iteration by name.

        ``carried`` names those that the loop carries to its next iteration.
        """
        ...

    def branch(self, name: str, value: bool) -> bool:
        """Record a decision, and return it."""
        ...

    def ended(self, why: str) -> None:
        """Record why the current loop ends after this iteration."""
        ...


class IdleTrace:
    """A trace that is switched off: every call returns at once."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def iterations(self, name: str, iterable: Iterable[Item]) -> Iterable[Item]:
        return iterable

    def loop(self, name: str) -> Any:
        return _IDLE_TURN

    def record(self, /, **values: Any) -> None:
        return None

    def branch(self, name: str, value: bool) -> bool:
        return value

    def ended(self, why: str) -> None:
        return None


_IDLE_TURN = nullcontext()
IDLE = IdleTrace()
_OPEN: list[Recorder] = []
"""Recorders whose context is open, outermost first."""


def trace(
    path: str | os.PathLike[str] | None = None, *, budget: float = DEFAULT_BUDGET
) -> Recorder | IdleTrace:
    """Return a recorder that writes the loops of a program to a trace file, as a context.

    ``budget``: megabytes of tensors that are stored exactly. Later tensors of more than 64 elements
    become fingerprints: norm, extremes, digest and sampled elements. Without ``path``, return the
    recorder whose context is open. The result does nothing if there is none, or if the environment
    variable ``LOOPSCOPE_TRACE`` is ``0``. ``InputError`` if the file cannot be written, or exists
    and is not a trace.
    """
    if os.environ.get(SWITCH) == "0":
        return IDLE
    if path is None:
        return _OPEN[-1] if _OPEN else IDLE
    return Recorder(Path(path), int(budget * 2**20))


class Recorder:
    """A writer of one trace file. Events reach the file within a tenth of a second."""

    def __init__(self, path: Path, budget_bytes: int) -> None:
        self.path = path
        self.budget_bytes = budget_bytes
        """Remaining bytes of tensors that are stored exactly."""
        self._events: list[object] = []
        self._bytes = 0
        self._loops: list[_OpenLoop] = []
        self._reason = ""
        self._guard = ""
        """Name of the last event before a loop, if that was a decision."""
        self._written = time.monotonic()
        self._encoder = msgspec.msgpack.Encoder()
        self._file = BlockWriter(path)
        atexit.register(self.close)

    def __enter__(self) -> Self:
        _OPEN.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        if "jax" in sys.modules:  # callbacks that have not run yet
            sys.modules["jax"].effects_barrier()
        if self in _OPEN:
            _OPEN.remove(self)
        if error is not None:
            self._events.append((form.FAILURE, shorten(f"{type(error).__name__}: {error}", 200)))
        self.close()

    def close(self) -> None:
        """End the open loops and write everything; a closed trace ignores later calls."""
        while self._loops:
            self._end_loop(form.LEFT)
        self._events.append((form.CLOSED,))
        self.flush()
        self._file.close()
        atexit.unregister(self.close)

    def iterations(self, name: str, iterable: Iterable[Item]) -> Iterator[Item]:
        """Yield the items of ``iterable``, and record an iteration of loop ``name`` for each."""
        loop = self._begin_loop(name, _length(iterable))
        ending = form.LEFT
        try:
            for item in iterable:
                self._close_loops_inside(loop)
                self._begin_iteration()
                yield item
            ending = form.EXHAUSTED
        finally:
            if loop in self._loops:
                self._close_loops_inside(loop)
                self._end_loop(ending)

    def loop(self, name: str) -> _Turn:
        """Return a context for one turn of the loop ``name``, such as the body of a ``while``.

        Turns of one name that follow each other belong to one execution of the loop.
        """
        return _Turn(self, name)

    def record(self, /, *, carried: str | Sequence[str] = (), **values: Any) -> None:
        """Record values of the current iteration by name.

        A value is a number, or an array of numpy, torch, JAX, TensorFlow, MLX or CuPy. ``carried``
        names values that the loop carries to its next iteration. A value that was recorded before
        the loop under the same name is carried too: it is the initial value. A complex value
        becomes two, such as ``x.real`` and ``x.imag``. ``InputError`` for a value that is not
        numeric.
        """
        if self._loops and self._loops[-1].paused:
            self._end_loop(form.LEFT)
        self._guard = ""
        for value in values.values():
            if type(value) not in _PLAIN_TYPES:
                self._record_arrays(values)
                break
        else:
            self._events.append((form.SCALARS, values))
        if carried:
            names = [carried] if isinstance(carried, str) else [*carried]
            self._events.append((form.CARRIED, names))
        if len(self._events) > _BUFFERED_EVENTS:
            self.flush()

    def record_values(self, values: Mapping[str, Any]) -> None:
        """Record values of any names, as ``record`` does."""
        with_any_name: Any = self.record
        reserved = {name: value for name, value in values.items() if name in _RESERVED}
        with_any_name(**{name: value for name, value in values.items() if name not in reserved})
        self._record_arrays(reserved)

    def branch(self, name: str, value: bool) -> bool:
        """Record a decision, and return it.

        ``while trace.branch("go", ...)``: the decision before the first turn of a loop is recorded
        around the loop, and its repetition after each turn in that turn.
        """
        if self._loops and self._loops[-1].paused and self._loops[-1].guard != name:
            self._end_loop(form.LEFT)
        self._guard = name
        self._events.append((form.BRANCH, name, bool(value)))
        return value

    def ended(self, why: str) -> None:
        """Record why the current loop ends after this iteration."""
        if not isinstance(why, str) or not why:
            raise InputError(f"ended() expects a text, got {shorten(repr(why), 60)}")
        self._reason = why

    def flush(self, *blocks: tuple[bytes, bytes]) -> None:
        """Pass the buffered events to the file, and the ``blocks`` that follow them."""
        events, self._events, self._bytes = self._events, [], 0
        self._written = time.monotonic()
        for begin in range(0, len(events), _EVENTS_PER_BLOCK):
            part = events[begin : begin + _EVENTS_PER_BLOCK]
            try:
                data = self._encoder.encode(part)
            except OverflowError:  # an integer of more than 64 bits
                data = self._encoder.encode([*map(_without_large_integers, part)])
            following = blocks if begin + _EVENTS_PER_BLOCK >= len(events) else ()
            self._file.append((form.EVENTS, data), *following)

    def _record_arrays(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if type(value) in _PLAIN_TYPES:
                self._events.append((form.SCALARS, {name: value}))
            else:
                array = as_numpy(name, value)
                if array.dtype.kind == "c":
                    self._record_array(f"{name}.real", array.real)
                    self._record_array(f"{name}.imag", array.imag)
                else:
                    self._record_array(name, array)

    def _record_array(self, name: str, array: np.ndarray) -> None:
        type_name, shape = str(ElementType.of(array)), array.shape
        if array.size > MOST_SAMPLES and self.budget_bytes < array.nbytes:
            facts, samples = fingerprint(array)
            self._events.append(
                (form.FINGERPRINT, name, type_name, shape, facts, samples.tobytes())
            )
            return
        self.budget_bytes -= array.nbytes
        if array.nbytes < _INLINE_BYTES:
            self._events.append((form.TENSOR, name, type_name, shape, array.tobytes()))
            self._bytes += array.nbytes
            if self._bytes > _BUFFERED_BYTES:
                self.flush()
            return
        self._events.append((form.LARGE, name, type_name, shape))
        self.flush((form.DATA, array.tobytes()))

    def _begin_loop(self, name: str, total: int | None) -> _OpenLoop:
        if self._loops and self._loops[-1].paused:
            self._end_loop(form.LEFT)
        loop = _OpenLoop(name, self._guard)
        self._loops.append(loop)
        self._events.append((form.LOOP, name, total))
        self._reason = ""
        return loop

    def _begin_iteration(self) -> None:
        self._events.append((form.ITERATION,))
        self._reason = self._guard = ""
        if time.monotonic() - self._written > _SECONDS_BETWEEN_WRITES:
            self.flush()

    def _begin_turn(self, name: str) -> _OpenLoop:
        paused = self._loops[-1] if self._loops and self._loops[-1].paused else None
        loop = paused if paused and paused.name == name else self._begin_loop(name, None)
        loop.paused = False
        self._begin_iteration()
        return loop

    def _end_turn(self, loop: _OpenLoop) -> None:
        if loop in self._loops:
            self._close_loops_inside(loop)
            loop.paused = True

    def _close_loops_inside(self, loop: _OpenLoop) -> None:
        while self._loops[-1] is not loop:
            self._end_loop(form.LEFT)

    def _end_loop(self, ending: str) -> None:
        self._loops.pop()
        self._events.append(
            (form.END, form.REASON, self._reason) if self._reason else (form.END, ending, "")
        )
        self._reason = ""


class _OpenLoop:
    """A loop that has begun. It is paused between two turns of a ``while``."""

    __slots__ = ("guard", "name", "paused")

    def __init__(self, name: str, guard: str) -> None:
        self.name, self.guard = name, guard
        self.paused = False


class _Turn:
    """A context for one turn of a loop."""

    __slots__ = ("_loop", "_name", "_recorder")

    def __init__(self, recorder: Recorder, name: str) -> None:
        self._recorder, self._name = recorder, name

    def __enter__(self) -> None:
        self._loop = self._recorder._begin_turn(self._name)

    def __exit__(self, *_: object) -> None:
        self._recorder._end_turn(self._loop)


def _length(iterable: object) -> int | None:
    """Return the number of items; None if it is unknown, as of a generator or a 0-d array."""
    if not isinstance(iterable, Sized):
        return None
    try:
        return len(iterable)
    except (TypeError, OverflowError, NotImplementedError):  # raised by arrays of frameworks
        return None


def _without_large_integers(event: Any) -> Any:
    if event[0] != form.SCALARS:
        return event
    values = {
        name: value if -(2**63) <= value < 2**63 else float(value)
        for name, value in event[1].items()
    }
    return (form.SCALARS, values)
