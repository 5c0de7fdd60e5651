"""The cache of GroupQueryAttention: keys or values of earlier tokens, whole or the last ones
alone, in floats or quantized.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array
from loopscope.ops.precision import computable


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """How numbers lie in a cache: as they are (``scale`` None), in 8 bits, or two of 4 bits in a
    byte.
    """

    dtype: np.dtype
    scale: Array | None = None
    bits: int = 8

    @staticmethod
    def of(
        kind: str, scale: Array | None, past: Array | None, bits: int, dtype: np.dtype
    ) -> Stored:
        """From the attributes and inputs of a node; ``ValueError`` where they contradict each
        other.
        """
        if kind == "NONE":
            return Stored(dtype)
        if kind not in ("PER_TENSOR", "PER_CHANNEL") or bits not in (4, 8) or scale is None:
            raise ValueError(
                f"the cache is quantized {kind[:40]!r} in {bits} bits {'with' if scale is not None else 'without'} a scale: "
                "expected PER_TENSOR or PER_CHANNEL, 8 or 4 bits, and a scale"
            )
        narrow = np.dtype(np.int8 if bits == 8 else np.uint8)
        if past is not None and past.dtype != narrow:
            raise ValueError(f"a cache of {bits} bits has the type {past.dtype}, expected {narrow}")
        return Stored(
            narrow,
            computable(scale).reshape(-1, 1, scale.shape[-1])
            if scale.ndim > 1
            else computable(scale),
            bits,
        )

    def encoded(self, values: Array) -> Array:
        """``[..., L, H]`` as they lie in the cache, rounded to the nearest, halves to even."""
        if self.scale is None:
            return values.astype(self.dtype, copy=False)
        most = 2 ** (self.bits - 1)
        whole = np.clip(np.rint(values / self.scale), -most, most - 1)
        if self.bits == 8:
            return whole.astype(np.int8)
        places = (whole + most).astype(np.uint8)
        return np.asarray(places[..., ::2] | places[..., 1::2] << 4)

    def decoded(self, stored: Array) -> Array:
        """The numbers that lie in a cache."""
        if self.scale is None:
            return computable(stored)
        if self.bits == 8:
            return stored.astype(np.float32) * self.scale
        both = np.stack((stored & 15, stored >> 4), -1).reshape(*stored.shape[:-1], -1)
        return (both.astype(np.float32) - 8) * self.scale


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What the queries of one of the batch may look at: ``[M, R, H]``, and the position of the
    first row.
    """

    rows: Array
    first: int


@dataclass(frozen=True, slots=True, eq=False)
class KeyValueCache:
    """Keys or values: what the cache holds, and what is new, ``[B, M, S, H]``."""

    past: Array | None
    now: Array
    stored: Stored
    window: int | None
    """Where the cache holds the last tokens alone: how many of them at least."""
    longest: int
    """The greatest number of tokens of the batch, the new ones among them."""

    @staticmethod
    def of(
        past: Array | None, now: Array, stored: Stored, window: int | None, longest: int
    ) -> KeyValueCache:
        """``ValueError`` where the shapes do not fit."""
        batch, heads, _, width = now.shape
        expected = (
            batch,
            heads,
            width // 2 if stored.scale is not None and stored.bits == 4 else width,
        )
        if past is not None and (
            past.ndim != 4 or (past.shape[0], past.shape[1], past.shape[3]) != expected
        ):
            raise ValueError(
                f"a cache has shape {list(past.shape)}, expected [{batch}, {heads}, length, {expected[2]}]"
            )
        if window is not None and (past is None or not 0 < window <= past.shape[2]):
            room = "left out" if past is None else f"of {past.shape[2]} places"
            raise ValueError(
                f"with sliding_window_cache local_window_size is {window} and the cache {room}, expected at least as many"
            )
        return KeyValueCache(past, now, stored, window, longest)

    @property
    def room(self) -> int:
        """How many tokens there is room for."""
        before = 0 if self.past is None else self.past.shape[2]
        return before if self.window is not None else max(before, self.longest)

    def resident(self, tokens: int) -> int:
        """Of so many tokens, how many the cache holds: when it is full, as many go at once as
        the window lets go.
        """
        if self.window is None or tokens <= self.room:
            return tokens
        going = self.room - self.window + 1
        return tokens - going * math.ceil((tokens - self.room) / going)

    def seen(self, number: int, before: int, total: int) -> Seen:
        """One of the batch, which has so many tokens before the new ones, and with them; new
        ones beyond are padding.
        """
        new = self.stored.decoded(
            self.stored.encoded(self.now[number, :, : max(total - before, 0)])
        )
        held = self.resident(before)
        if not held:
            return Seen(new, before)
        room = 0 if self.past is None else self.past.shape[2]
        if self.past is None or held > room:
            raise ValueError(
                f"{before} tokens come before the new ones, and the cache has room for {room}"
            )
        return Seen(
            np.concatenate((self.stored.decoded(self.past[number, :, :held]), new), 1),
            before - held,
        )

    def handed_on(self, before: Sequence[int], totals: Sequence[int]) -> Array:
        """The cache with the new tokens; 0 where none is."""
        batch, heads, _, width = self.now.shape
        now = self.stored.encoded(self.now)
        check_elements(batch * heads * self.room * width, "the cache")
        made = np.zeros((batch, heads, self.room, now.shape[3]), now.dtype)
        for number, (earlier, total) in enumerate(zip(before, totals, strict=True)):
            held = self.resident(earlier)
            whole = (
                now[number]
                if self.past is None or not held
                else np.concatenate((self.past[number, :, :held], now[number]), 1)
            )
            kept = (
                whole if self.window is None else whole[:, whole.shape[1] - self.resident(total) :]
            )
            made[number, :, : kept.shape[1]] = kept
        return made
