"""SparseAttention beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from loopscope.errors import EngineError
from tests.engine.ops.microsoft_nodes import Case

_RANDOM = np.random.default_rng(31)
BATCH, HEADS, KEY_HEADS, SIZE, BLOCK, BLOCKS = 2, 4, 2, 16, 16, 4
ROOM = BLOCK * BLOCKS
LAYOUTS = np.array(
    [
        [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1]],
        [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1]],
    ]
)


def reals(*shape: int) -> np.ndarray:
    return _RANDOM.standard_normal(shape).astype(np.float32)


def block_mask() -> tuple[np.ndarray, np.ndarray]:
    """Return the layouts as row and column indices, as in the operator's documentation."""
    counts = LAYOUTS.sum(2)
    rows = np.concatenate([np.zeros((2, 1), int), counts.cumsum(1)], axis=1)
    columns = np.full((2, rows[:, -1].max()), -1)
    for layout, mask in enumerate(LAYOUTS):
        columns[layout, : rows[layout, -1]] = np.nonzero(mask)[1]
    return rows.astype(np.int32), columns.astype(np.int32)


def attention(
    length: int, totals: list[int], *, packed: bool = False, rotary: bool = False
) -> Case:
    separate = [reals(BATCH, length, heads * SIZE) for heads in (HEADS, KEY_HEADS, KEY_HEADS)]
    inputs = [
        *([np.concatenate(separate, axis=2), None, None] if packed else separate),
        *(reals(BATCH, KEY_HEADS, ROOM, SIZE) for _ in range(2)),
        *block_mask(),
        np.array([max(totals)], np.int32),
        np.array(totals, np.int32),
        *([reals(ROOM, SIZE // 2), reals(ROOM, SIZE // 2)] if rotary else []),
    ]
    attributes = {
        "num_heads": HEADS,
        "kv_num_heads": KEY_HEADS,
        "sparse_block_size": BLOCK,
        **({"do_rotary": 1} if rotary else {}),
    }
    return Case("SparseAttention", inputs, attributes, (True, True, True))


CASES = {
    "a prompt": attention(50, [50, 50]),
    "a packed prompt": attention(40, [40, 40], packed=True),
    "a token": attention(1, [60, 60]),
    "rotated": attention(1, [50, 50], rotary=True),
}


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_the_runtime(case: Case) -> None:
    """ONNX Runtime requires that past and present are one buffer."""
    session = onnxruntime.InferenceSession(case.model, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    values = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy(array.copy())
        for name, array in case.feeds.items()
    }
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("y0")
    for output, buffer in (("y1", "x3"), ("y2", "x4")):
        binding.bind_ortvalue_output(output, values[buffer])
    session.run_with_iobinding(binding)
    totals = case.feeds["x8"].tolist()
    for number, (own, peer) in enumerate(
        zip(case.here(), binding.copy_outputs_to_cpu(), strict=True)
    ):
        assert own.shape == peer.shape
        for row, total in enumerate(totals):
            used = (slice(None), slice(total)) if number else ()
            np.testing.assert_allclose(own[row][used], peer[row][used], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_shapes_are_those_of_the_run(case: Case) -> None:
    case.check_promises(case.here())


def test_sequences_of_two_lengths_are_refused() -> None:
    case = attention(1, [60, 20])
    with pytest.raises(EngineError, match="expected 60 in each"):
        case.here()


def test_a_mask_with_too_few_blocks_is_refused() -> None:
    case = attention(1, [60, 60])
    inputs = list(case.inputs)
    rows, columns = block_mask()
    inputs[5], inputs[6] = rows[:, :3], columns
    with pytest.raises(EngineError, match="more than 2 blocks of 16 tokens"):
        Case(case.type, inputs, case.attributes).here()
