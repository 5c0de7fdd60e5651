"""How far a run may go: its limits, and the count of what it has used of them."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from loopscope.errors import InputError


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one run; reaching one pauses it and keeps everything. None: no bound."""

    iterations: int | None = 100_000_000
    """Executions of loop bodies, all loops together."""
    seconds: float | None = 600.0
    """Wall-clock time of computing."""
    memory_bytes: int | None = 4 * 2**30
    """Bytes of one operation's output, and of everything that loops have collected and recorded."""

    def __post_init__(self) -> None:
        for name in ("iterations", "seconds", "memory_bytes"):
            bound = getattr(self, name)
            if bound is not None and not (
                isinstance(bound, (int, float, np.number)) and bound >= 0
            ):
                raise InputError(
                    f"the limit of {name} is {bound!r}: a number from 0 on is expected, or None for no bound"
                )


class Paused(Exception):
    """The run stops at this iteration boundary; ``cause`` is ``limit`` or ``stopped``."""

    def __init__(self, cause: Literal["limit", "stopped"], message: str) -> None:
        self.cause = cause
        self.message = message
        super().__init__(message)


class Endless(Paused):
    """The run stops in a loop of which it is proved that it can never end; ``why`` is the proof,
    in words.
    """

    def __init__(self, why: str) -> None:
        super().__init__("limit", f"this loop can never end: {why}")
        self.why = why


_SHARE_AT_ONCE, _FEW_ELEMENTS = 64, 1 << 20
_ANY_NUMBER = 1 << 62
_YIELD_EVERY = 0.02
_SHORT, _LONG = 0.004, 0.02
_MOST_ITERATIONS_UNWATCHED = 1 << 12


@dataclass(eq=False)
class RunControl:
    """Counts iterations and time of one run; any thread may set ``stop``."""

    limits: Limits
    iterations: int = 0
    """Executions of loop bodies that have ended."""
    used_seconds: float = 0.0
    stop: threading.Event = field(default_factory=threading.Event)
    allowed: int = 0
    """Executions of bodies that could still begin when generated code began."""
    _inside: int = 0
    _since: float = 0.0
    _safepoint: float = 0.0
    _running: int = 0
    _yielded: float = field(default_factory=time.perf_counter)

    @property
    def most_elements(self) -> int | None:
        """Elements that one operation's output may have: four bytes are counted for each."""
        return None if self.limits.memory_bytes is None else max(1, self.limits.memory_bytes // 4)

    @property
    def elements_at_once(self) -> int | None:
        """Return the elements of an operation's output from which it is looked first whether the
        limit has room for it.
        """
        return (
            None
            if self.limits.memory_bytes is None
            else max(_FEW_ELEMENTS, self.limits.memory_bytes // _SHARE_AT_ONCE)
        )

    def begin(self) -> None:
        """Computing starts: the clock runs."""
        self._running += 1
        if self._running == 1:
            self._since = self._safepoint = time.perf_counter()

    def end(self) -> None:
        """Stops the clock while nothing is computed."""
        self._running -= 1
        if self._running == 0:
            self.used_seconds += time.perf_counter() - self._since

    def extend(self, allowance: Limits) -> None:
        """After a limit: as much again."""
        iterations, memory = (
            None if more is None or bound is None else bound + more
            for bound, more in (
                (self.limits.iterations, allowance.iterations),
                (self.limits.memory_bytes, allowance.memory_bytes),
            )
        )
        self.limits = Limits(iterations, allowance.seconds, memory)
        self.used_seconds = 0.0

    def check(self, held_bytes: int) -> None:
        """Raises ``Paused`` when the run was asked to stop or has reached a limit."""
        if self.stop.is_set():
            self.stop.clear()
            raise Paused("stopped", "the run was stopped")
        limits = self.limits
        if (
            limits.seconds is not None
            and self.used_seconds + time.perf_counter() - self._since > limits.seconds
        ):
            raise Paused("limit", f"the limit of {limits.seconds:g} seconds is reached")
        if limits.memory_bytes is not None and held_bytes > limits.memory_bytes:
            raise Paused(
                "limit",
                f"the limit of {limits.memory_bytes:,} bytes is reached: loops have collected {held_bytes:,}",
            )

    def left(self, under_way: int) -> int:
        """How many executions of loop bodies may still begin while so many are under way."""
        if self.limits.iterations is None:
            return _ANY_NUMBER
        return max(0, self.limits.iterations - self.iterations - under_way)

    @property
    def reached(self) -> int:
        """Executions of loop bodies that have ended, with those that generated code has reported
        so far.
        """
        return self.iterations + self._inside

    def look(self, left: int) -> None:
        """Generated code reports how many executions of bodies may still begin."""
        self._inside = self.allowed - left
        self.check_left(left)

    def check_left(self, left: int) -> None:
        """Between two iterations: ``Paused`` when as many as allowed have begun."""
        if left == 0:
            raise Paused("limit", f"the limit of {self.limits.iterations:,} iterations is reached")

    def enter(self, under_way: int) -> None:
        """Generated code begins to count, while so many executions of bodies outside it are
        under way.
        """
        self.allowed = self.left(under_way)

    def leave(self, left: int, under_way: int) -> None:
        """Generated code has ended, and so many more may begin; ``under_way`` are those that it
        began and did not end.
        """
        self.iterations += self.allowed - left - under_way
        self.allowed, self._inside = left, 0

    def next_chunk(self, chunk: int) -> int:
        """How many iterations to run before the next look, so that looks are some milliseconds
        apart.
        """
        now = time.perf_counter()
        elapsed = now - self._safepoint
        if now - self._yielded > _YIELD_EVERY:
            # The interpreter hands over between threads when it likes, which may take half a
            # second: too long for who wants to stop us.
            time.sleep(1e-6)
            self._yielded = now = time.perf_counter()
        self._safepoint = now
        if elapsed < _SHORT:
            chunk = min(chunk * (2 if elapsed * 10 > _SHORT else 8), _MOST_ITERATIONS_UNWATCHED)
        elif elapsed > _LONG:
            chunk = max(chunk // 2, 1)
        return chunk
