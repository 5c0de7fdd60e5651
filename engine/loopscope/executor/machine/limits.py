"""Limits of a run, and the count of used iterations, seconds and bytes."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from loopscope.errors import InputError
from loopscope.ir.readable import significant


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run. A run that reaches a limit pauses without losing its state. None means no
    limit.
    """

    iterations: int | None = 100_000_000
    """Number of body executions of all loops together."""
    seconds: float | None = 600.0
    """Wall-clock seconds of computing."""
    memory_bytes: int | None = 4 * 2**30
    """Bytes of one operation's output, and of all collected and recorded values of loops."""

    def __post_init__(self) -> None:
        for name in ("iterations", "seconds", "memory_bytes"):
            bound = getattr(self, name)
            if bound is not None and not (
                isinstance(bound, (int, float, np.number)) and bound >= 0
            ):
                raise InputError(
                    f"limit {name}: expected a number of at least 0, or None for no limit, "
                    f"got {bound!r}"
                )


class Paused(Exception):
    """Pause of the run at this iteration boundary; ``cause`` is ``limit`` or ``stopped``."""

    def __init__(self, cause: Literal["limit", "stopped"], message: str) -> None:
        self.cause = cause
        self.message = message
        super().__init__(message)


class Endless(Paused):
    """Pause of the run in a loop that is proved never to end; ``why`` is the proof in words."""

    def __init__(self, why: str) -> None:
        super().__init__("limit", f"this loop can never end: {why}")
        self.why = why


_SHARE_AT_ONCE, _FEW_ELEMENTS = 64, 1 << 20
_UNLIMITED = 1 << 62
_YIELD_SECONDS = 0.02
_MIN_CHUNK_SECONDS, _MAX_CHUNK_SECONDS = 0.004, 0.02
_MAX_CHUNK = 1 << 12


@dataclass(eq=False)
class RunControl:
    """Counter of the iterations and time of one run. Any thread may set ``stop``."""

    limits: Limits
    iterations: int = 0
    """Number of body executions that have ended."""
    used_seconds: float = 0.0
    stop: threading.Event = field(default_factory=threading.Event)
    allowed: int = 0
    """Number of body executions that could still begin when generated code began."""
    _inside: int = 0
    _since: float = 0.0
    _safepoint: float = 0.0
    _running: int = 0
    _yielded: float = field(default_factory=time.perf_counter)

    @property
    def most_elements(self) -> int | None:
        """Maximum number of elements of one operation's output, at four bytes each."""
        return None if self.limits.memory_bytes is None else max(1, self.limits.memory_bytes // 4)

    @property
    def elements_at_once(self) -> int | None:
        """Output size in elements from which memory is checked before the operation runs."""
        return (
            None
            if self.limits.memory_bytes is None
            else max(_FEW_ELEMENTS, self.limits.memory_bytes // _SHARE_AT_ONCE)
        )

    def begin(self) -> None:
        """Start the clock."""
        self._running += 1
        if self._running == 1:
            self._since = self._safepoint = time.perf_counter()

    def end(self) -> None:
        """Stop the clock while nothing is computed."""
        self._running -= 1
        if self._running == 0:
            self.used_seconds += time.perf_counter() - self._since

    def extend(self, allowance: Limits) -> None:
        """Add ``allowance`` to the limits after a limit was reached."""
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
        """Raise ``Paused`` if the run was stopped or has reached a limit."""
        if self.stop.is_set():
            self.stop.clear()
            raise Paused("stopped", "the run was stopped")
        limits = self.limits
        if (
            limits.seconds is not None
            and self.used_seconds + time.perf_counter() - self._since > limits.seconds
        ):
            raise Paused(
                "limit", f"the limit of {significant(limits.seconds, 6)} seconds is reached"
            )
        if limits.memory_bytes is not None and held_bytes > limits.memory_bytes:
            raise Paused(
                "limit",
                f"the limit of {limits.memory_bytes:,} bytes is reached: "
                f"loops have collected {held_bytes:,}",
            )

    def left(self, under_way: int) -> int:
        """Return how many body executions may still begin while ``under_way`` are open."""
        if self.limits.iterations is None:
            return _UNLIMITED
        return max(0, self.limits.iterations - self.iterations - under_way)

    @property
    def reached(self) -> int:
        """Number of body executions that have ended, including those that generated code has
        reported so far.
        """
        return self.iterations + self._inside

    def look(self, left: int) -> None:
        """Process a report from generated code of how many body executions may still begin."""
        self._inside = self.allowed - left
        self.check_left(left)

    def check_left(self, left: int) -> None:
        """Raise ``Paused`` between two iterations if no further body execution may begin."""
        if left == 0:
            raise Paused("limit", f"the limit of {self.limits.iterations:,} iterations is reached")

    def enter(self, under_way: int) -> None:
        """Begin counting in generated code, while ``under_way`` outer body executions are open."""
        self.allowed = self.left(under_way)

    def leave(self, left: int, under_way: int) -> None:
        """End counting in generated code. ``under_way`` is the number of body executions that began
        there and did not end.
        """
        self.iterations += self.allowed - left - under_way
        self.allowed, self._inside = left, 0

    def next_chunk(self, chunk: int) -> int:
        """Return the number of iterations before the next safepoint, so that safepoints are some
        milliseconds apart.
        """
        now = time.perf_counter()
        elapsed = now - self._safepoint
        if now - self._yielded > _YIELD_SECONDS:
            # Python may switch threads only after half a second, which is too long for a user who
            # stops the run.
            time.sleep(1e-6)
            self._yielded = now = time.perf_counter()
        self._safepoint = now
        if elapsed < _MIN_CHUNK_SECONDS:
            chunk = min(chunk * (2 if elapsed * 10 > _MIN_CHUNK_SECONDS else 8), _MAX_CHUNK)
        elif elapsed > _MAX_CHUNK_SECONDS:
            chunk = max(chunk // 2, 1)
        return chunk
