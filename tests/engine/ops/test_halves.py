"""f16 as f32: the fast way of many gives the bits of numpy's own, for every number that f16 has."""

from __future__ import annotations

import numpy as np
import pytest

from loopscope.ops.kernel_arithmetic import computable

ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
FINITE = ALL[np.isfinite(ALL)]

ARRAYS = {
    "all finite": FINITE,
    "all, with infinities and what is no number": ALL,
    "subnormal": np.resize(ALL[1:1024], 20_000),
    "zeros of both signs": np.resize(ALL[[0, 1 << 15]], 20_000),
    "one infinity": np.append(FINITE, np.float16(-np.inf)),
    "few": FINITE[:7],
    "none": FINITE[:0],
    "every other": FINITE[::2],
    "backwards": FINITE[::-1],
    "transposed": FINITE[: 200 * 300].reshape(200, 300).T,
    "the same again": np.broadcast_to(FINITE[:100], (100, 100)),
    "of the other byte order": FINITE.astype(">f2"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_halves_become_singles_bit_for_bit(name: str) -> None:
    halves = ARRAYS[name]
    before = halves.tobytes()
    found, expected = computable(halves), halves.astype(np.float32)
    assert (found.dtype, found.shape) == (np.dtype(np.float32), expected.shape)
    assert found.flags.writeable
    np.testing.assert_array_equal(found.view(np.int32), expected.view(np.int32))
    assert halves.tobytes() == before
