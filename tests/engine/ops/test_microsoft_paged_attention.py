"""PagedAttention, which ONNX Runtime computes on GPUs only, beside its GroupQueryAttention.

Each packed sequence is one call of the latter, whose cache is the blocks of the sequence in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopscope.errors import EngineError
from tests.engine.ops.microsoft_nodes import Case

_RANDOM = np.random.default_rng(21)
HEADS, KEY_HEADS, WIDTH, SIZE, BLOCKS = 4, 2, 16, 4, 9
LENGTHS, PAST = (3, 1, 0, 2), (0, 6, 5, 3)
ENDS = np.cumsum((0, *LENGTHS)).astype(np.int32)
TABLE = np.array([[4, 0], [7, 2], [1, 5], [8, 3]], np.int32)
"""The blocks of each sequence; block 6 belongs to none."""


def reals(*shape: int) -> np.ndarray:
    return _RANDOM.normal(size=shape).astype(np.float32)


TOKENS = [reals(sum(LENGTHS), heads * WIDTH) for heads in (HEADS, KEY_HEADS, KEY_HEADS)]
CACHES = [reals(BLOCKS, SIZE, KEY_HEADS, WIDTH) for _ in range(2)]
TABLES = (reals(9, WIDTH // 2), reals(9, WIDTH // 2))
SINKS = reals(HEADS)


def paged(*further: np.ndarray | None, packed: bool = False, **attributes: Any) -> Case:
    tokens = [np.concatenate(TOKENS, 1), None, None] if packed else TOKENS
    inputs = [*tokens, *CACHES, ENDS, np.array(PAST, np.int32), TABLE, *further]
    settings = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS, **attributes}
    return Case("PagedAttention", inputs, settings, (True, True, True))


def one_sequence(number: int, tables: bool, sinks: bool, attributes: dict[str, Any]) -> Case:
    """Return one sequence as GroupQueryAttention with a cache as long as its blocks."""
    first, last = ENDS[number : number + 2]
    caches = [
        cache[TABLE[number]].reshape(1, -1, KEY_HEADS, WIDTH).swapaxes(1, 2) for cache in CACHES
    ]
    total = PAST[number] + LENGTHS[number]
    inputs: list[np.ndarray | None] = [
        *(tensor[None, first:last] for tensor in TOKENS),
        *caches,
        np.array([total - 1], np.int32),
        np.array(total, np.int32),
        *(TABLES if tables else (None, None)),
        None,
        None,
        SINKS if sinks else None,
    ]
    settings = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS, **attributes}
    return Case("GroupQueryAttention", inputs, settings, (True, True, True))


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("tables", "sinks", "attributes"),
    [
        (False, False, {}),
        (False, False, {"scale": 0.7, "softcap": 2.0}),
        (False, False, {"local_window_size": 3}),
        (False, True, {}),
        (True, False, {"do_rotary": 1}),
        (True, True, {"do_rotary": 1, "rotary_interleaved": 1, "local_window_size": 2}),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_each_sequence_is_that_of_the_runtimes_grouped_attention(
    tables: bool, sinks: bool, attributes: dict[str, Any], packed: bool
) -> None:
    further = (*(TABLES if tables else (None, None)), None, SINKS if sinks else None)
    case = paged(*further, packed=packed, **attributes)
    result, *own_caches = case.here()
    case.check_promises((result, *own_caches))
    for number, length in enumerate(LENGTHS):
        if not length:
            continue
        expected, *caches = one_sequence(number, tables, sinks, attributes).there()
        np.testing.assert_allclose(
            result[ENDS[number] : ENDS[number + 1]], expected[0], rtol=2e-5, atol=5e-6
        )
        for own, cache in zip(own_caches, caches, strict=True):
            rows = own[TABLE[number]].reshape(-1, KEY_HEADS, WIDTH).swapaxes(0, 1)
            total = PAST[number] + length
            np.testing.assert_allclose(rows[:, :total], cache[0][:, :total], rtol=2e-5, atol=5e-6)
    for own, before in zip(own_caches, CACHES, strict=True):
        np.testing.assert_array_equal(own[6], before[6])


def test_slots_say_where_a_token_is_written() -> None:
    usual = paged().here()
    slots = np.array([16, 17, 18, 10, 15, 32], np.int32)
    slots[4] = 8 * SIZE + 3
    slots[5] = 3 * SIZE
    same = paged(None, None, slots).here()
    for left, right in zip(usual, same, strict=True):
        np.testing.assert_array_equal(left, right)
    slots[3] = -1
    _, keys, _ = paged(None, None, slots).here()
    np.testing.assert_array_equal(keys[2, 2], CACHES[0][2, 2])


def test_heads_are_normalized_before_they_are_rotated() -> None:
    gains = reals(WIDTH), reals(WIDTH)
    given = paged(None, None, None, None, *gains, packed=False)
    scaled = []
    for tokens, gain in zip(TOKENS, gains, strict=False):
        heads = tokens.reshape(len(tokens), -1, WIDTH).astype(np.float64)
        root = np.sqrt((heads**2).mean(-1, keepdims=True) + 1e-6)
        scaled.append((heads / root * gain).reshape(tokens.shape).astype(np.float32))
    inputs = [*scaled, *paged().inputs[2:]]
    expected = Case("PagedAttention", inputs, given.attributes, given.outputs).here()
    for left, right in zip(given.here(), expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=2e-5, atol=5e-6)


def test_all_new_tokens_see_each_other_unless_causal() -> None:
    """The window still bounds what lies to the left."""
    result, keys, values = paged(is_causal=0, local_window_size=2, scale=1.0).here()
    rows = keys[TABLE[0]].reshape(-1, KEY_HEADS, WIDTH)[:3]
    carried = values[TABLE[0]].reshape(-1, KEY_HEADS, WIDTH)[:3]
    query = TOKENS[0][2].reshape(HEADS, WIDTH)
    scores = np.einsum("nh,tnh->nt", query, np.repeat(rows, 2, 1)[1:])
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    expected = np.einsum("nt,tnh->nh", weights, np.repeat(carried, 2, 1)[1:])
    np.testing.assert_allclose(result[2], expected.reshape(-1), rtol=2e-5, atol=5e-6)


@pytest.mark.parametrize(
    ("number", "value", "attributes", "message"),
    [
        (5, np.array([0, 3, 4, 4, 5], np.int32), {}, "ascending list from 0 to 6"),
        (6, np.array([0, 20, 5, 3], np.int32), {}, "block_table has room for 8"),
        (7, np.full((4, 2), 9, np.int32), {}, "expected 0 to 8"),
        (10, np.full(6, 36, np.int32), {}, "slots from -1 to 35"),
        (4, None, {}, "a cache of values"),
        (12, reals(WIDTH), {}, "only one of them is given"),
        (4, CACHES[1], {"k_quant_type": "PER_TENSOR"}, "a cache of floats"),
        (4, CACHES[1], {"do_rotary": 1}, "cos_cache or sin_cache is left out"),
        (3, reals(BLOCKS, SIZE, KEY_HEADS, 8), {}, "a cache has shape"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(
    number: int, value: np.ndarray | None, attributes: dict[str, Any], message: str
) -> None:
    case = paged(None, None, None, **attributes)
    inputs = [*case.inputs, None, None]
    inputs[number] = value
    while inputs[-1] is None:
        inputs.pop()
    with pytest.raises(EngineError, match=message):
        Case(case.type, inputs, case.attributes, case.outputs).here()
