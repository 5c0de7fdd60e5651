"""Times our ONNX kernels against ONNX Runtime's, both on one thread, in turns: ``python -m
tests.benchmarks.onnx_kernels [WORD ...]``.

Each is a model of one operation, planned here and loaded there, so that what either prepares of
weights is prepared.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
from onnx import ValueInfoProto, helper, numpy_helper

import loopscope
from loopscope.executor.machine.execute import computing
from loopscope.executor.plan.planner import plan_of
from tests.benchmarks.kernels import numbers, printed_row

_RANDOM = np.random.default_rng(0)


@dataclass(frozen=True)
class Layer:
    """One operation on typical inputs; those numbered in ``constant`` are weights of the model,
    None are left out.
    """

    title: str
    operation: str
    opset: int
    inputs: Sequence[np.ndarray | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    constant: tuple[int, ...] = ()
    outputs: int = 1
    bar: float = 3
    domain: str = ""


def whole(dtype: type, *shape: int) -> np.ndarray:
    """Integers of the type's whole range."""
    limits = np.iinfo(dtype)
    return _RANDOM.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def _places(shape: tuple[int, ...], most: int) -> np.ndarray:
    return _RANDOM.integers(0, most, shape)


def _regions(count: int) -> np.ndarray:
    corners = _RANDOM.uniform(0, 200, (count, 2)).astype(np.float32)
    return np.concatenate(
        [corners, corners + _RANDOM.uniform(20, 200, (count, 2)).astype(np.float32)], 1
    )


def _quantum(dtype: type, *shape: int) -> list[np.ndarray]:
    return [np.full(shape, 0.02, np.float32), np.full(shape, 3, dtype)]


_STEPS = 15
"""The bar of the LSTM of bytes: ONNX Runtime takes 1.5 us for a step of 128 units in one piece;
ours is some 40 calls of numpy and one product, which alone takes 2 us, as do the five activations.
"""
_BYTES = 10
"""The bar of products of bytes: ours are exact products in f32, ONNX Runtime's are by the
processor's instructions for bytes.
"""
_HALVES = 3.5
"""The bar of Attention in f16. Both compute in f32; numpy narrows the result one number after
the other, in a tenth of our time.
"""
_ROI = {"output_height": 7, "output_width": 7, "spatial_scale": 0.125, "sampling_ratio": 2}
_SAME = {"pads": [1, 1, 1, 1]}
_QUERY = (1, 12, 128, 64)
_IMAGE = numbers(1, 64, 56, 56)


def _of_bytes() -> list[np.ndarray]:
    return [np.full(1, 0.01, np.float32), np.zeros(1, np.int8)]


def layers() -> list[Layer]:
    """Layers of quantized networks and transformers, and operations that move elements."""
    zero, zeros = np.array(121, np.uint8), whole(np.int8, 1536)
    return [
        Layer(
            "MatMulInteger 128x384x1536",
            "MatMulInteger",
            10,
            [whole(np.uint8, 1, 128, 384), whole(np.int8, 384, 1536), zero, zeros],
            {},
            (1, 3),
            bar=_BYTES,
        ),
        Layer(
            "MatMulInteger 8x384x1536",
            "MatMulInteger",
            10,
            [whole(np.uint8, 8, 384), whole(np.int8, 384, 1536), zero],
            {},
            (1,),
            bar=_BYTES,
        ),
        Layer(
            "MatMulInteger 12 x 128x64x128",
            "MatMulInteger",
            10,
            [whole(np.uint8, 12, 128, 64), whole(np.uint8, 12, 64, 128), zero, zero],
            bar=_BYTES,
        ),
        Layer(
            "QLinearMatMul 128x384x1536",
            "QLinearMatMul",
            10,
            [
                whole(np.uint8, 128, 384),
                *_quantum(np.uint8),
                whole(np.int8, 384, 1536),
                *_quantum(np.int8),
                *_quantum(np.uint8),
            ],
            {},
            (1, 2, 3, 4, 5, 6, 7),
            bar=_BYTES,
        ),
        Layer(
            "QLinearMatMul 1x384x1536",
            "QLinearMatMul",
            10,
            [
                whole(np.uint8, 1, 384),
                *_quantum(np.uint8),
                whole(np.int8, 384, 1536),
                *_quantum(np.int8),
                *_quantum(np.uint8),
            ],
            {},
            (1, 2, 3, 4, 5, 6, 7),
            bar=_BYTES,
        ),
        Layer(
            "MatMulIntegerToFloat 1x384x1536",
            "MatMulIntegerToFloat",
            21,
            [
                whole(np.uint8, 1, 384),
                whole(np.int8, 384, 1536),
                *(np.full((), 0.02, np.float32) for _ in range(2)),
                zero,
            ],
            {},
            (1, 2, 3, 4),
            bar=_BYTES,
            domain="com.microsoft",
        ),
        Layer(
            "DynamicQuantizeMatMul 1x384x1536",
            "DynamicQuantizeMatMul",
            21,
            [numbers(1, 384), whole(np.int8, 384, 1536), np.full((), 0.02, np.float32)],
            {},
            (1, 2),
            bar=_BYTES,
            domain="com.microsoft",
        ),
        Layer(
            "ConvInteger 3x3 64>64 56x56",
            "ConvInteger",
            10,
            [whole(np.uint8, 1, 64, 56, 56), whole(np.uint8, 64, 64, 3, 3), zero],
            _SAME,
            (1,),
            bar=_BYTES,
        ),
        Layer(
            "QLinearConv 3x3 64>64 56x56",
            "QLinearConv",
            10,
            [
                whole(np.uint8, 1, 64, 56, 56),
                *_quantum(np.uint8),
                whole(np.int8, 64, 64, 3, 3),
                np.full(64, 0.02, np.float32),
                np.zeros(64, np.int8),
                *_quantum(np.uint8),
                whole(np.int16, 64).astype(np.int32),
            ],
            _SAME,
            (1, 2, 3, 4, 5, 6, 7, 8),
            bar=_BYTES,
        ),
        Layer(
            "ScatterElements rows",
            "ScatterElements",
            18,
            [numbers(512, 768), _places((128, 768), 512), numbers(128, 768)],
        ),
        Layer(
            "ScatterElements columns",
            "ScatterElements",
            18,
            [numbers(512, 768), _places((512, 64), 768), numbers(512, 64)],
            {"axis": 1},
        ),
        Layer(
            "ScatterElements add",
            "ScatterElements",
            18,
            [numbers(512, 768), _places((128, 768), 512), numbers(128, 768)],
            {"reduction": "add"},
        ),
        Layer(
            "ScatterND rows",
            "ScatterND",
            18,
            [numbers(512, 768), _places((128, 1), 512), numbers(128, 768)],
        ),
        Layer(
            "RoiAlign 100 of 256x32x32",
            "RoiAlign",
            16,
            [numbers(1, 256, 32, 32), _regions(100), np.zeros(100, np.int64)],
            _ROI,
        ),
        Layer(
            "RoiAlign max",
            "RoiAlign",
            16,
            [numbers(1, 256, 32, 32), _regions(100), np.zeros(100, np.int64)],
            {**_ROI, "mode": "max"},
        ),
        Layer(
            "QuantizeLinear",
            "QuantizeLinear",
            21,
            [numbers(128, 768), *_quantum(np.uint8)],
            constant=(1, 2),
            bar=4,
        ),
        Layer(
            "DequantizeLinear",
            "DequantizeLinear",
            21,
            [whole(np.uint8, 128, 768), *_quantum(np.uint8)],
            constant=(1, 2),
            bar=4,
        ),
        Layer(
            "DynamicQuantizeLinear",
            "DynamicQuantizeLinear",
            11,
            [numbers(128, 768)],
            outputs=3,
            bar=4,
        ),
        Layer(
            "Resize twice, nearest",
            "Resize",
            18,
            [_IMAGE, None, np.array([1, 1, 2, 2], np.float32)],
            {"mode": "nearest"},
            (2,),
        ),
        Layer(
            "Resize twice, linear",
            "Resize",
            18,
            [_IMAGE, None, np.array([1, 1, 2, 2], np.float32)],
            {"mode": "linear"},
            (2,),
        ),
        Layer(
            "GroupNormalization 8 of 64",
            "GroupNormalization",
            21,
            [_IMAGE, numbers(64), numbers(64)],
            {"num_groups": 8},
        ),
        Layer(
            "InstanceNormalization", "InstanceNormalization", 21, [_IMAGE, numbers(64), numbers(64)]
        ),
        Layer(
            "BatchNormalization",
            "BatchNormalization",
            15,
            [_IMAGE, *(numbers(64) ** 2 for _ in range(4))],
        ),
        Layer(
            "MaxPool 2x2",
            "MaxPool",
            12,
            [_IMAGE],
            {"kernel_shape": [2, 2], "strides": [2, 2]},
            bar=4,
        ),
        Layer("LeakyRelu", "LeakyRelu", 16, [_IMAGE], {"alpha": 0.1}),
        Layer(
            "Col2Im 3x3 64 of 56x56",
            "Col2Im",
            18,
            [numbers(1, 576, 3136), np.array([56, 56]), np.array([3, 3])],
            _SAME,
            (1, 2),
        ),
        Layer(
            "Attention 12x128x64",
            "Attention",
            23,
            [numbers(*_QUERY), numbers(*_QUERY), numbers(*_QUERY)],
        ),
        Layer(
            "Attention 12x128x64 f16",
            "Attention",
            23,
            [numbers(*_QUERY).astype(np.float16) for _ in range(3)],
            bar=_HALVES,
        ),
        Layer(
            "Attention causal",
            "Attention",
            23,
            [numbers(*_QUERY), numbers(*_QUERY), numbers(*_QUERY)],
            {"is_causal": 1},
        ),
        Layer(
            "Attention of 4 heads, past",
            "Attention",
            23,
            [
                numbers(1, 16, 768),
                numbers(1, 16, 256),
                numbers(1, 16, 256),
                None,
                numbers(1, 4, 112, 64),
                numbers(1, 4, 112, 64),
            ],
            {"q_num_heads": 12, "kv_num_heads": 4},
            outputs=3,
        ),
        Layer(
            "Einsum of integers 256",
            "Einsum",
            12,
            [_places((256, 256), 9), _places((256, 256), 9)],
            {"equation": "ij,jk->ik"},
        ),
        Layer("MatMul 8x384x1536", "MatMul", 13, [numbers(8, 384), numbers(384, 1536)], {}, (1,)),
        Layer("MatMul 16x768x768", "MatMul", 13, [numbers(16, 768), numbers(768, 768)], {}, (1,)),
        Layer(
            "MatMul of integers 256", "MatMul", 13, [_places((256, 256), 9), _places((256, 256), 9)]
        ),
        *(
            Layer(
                f"MatMulNBits {rows}x{size}x{columns}",
                "MatMulNBits",
                21,
                [
                    numbers(rows, size),
                    whole(np.uint8, columns, size // 32, 16),
                    np.full(columns * size // 32, 0.02, np.float32),
                ],
                {"K": size, "N": columns, "bits": 4, "block_size": 32},
                (1, 2),
                domain="com.microsoft",
            )
            for rows, size, columns in (
                (1, 384, 1536),
                (1, 4096, 4096),
                (8, 384, 1536),
                (128, 384, 1536),
            )
        ),
        Layer(
            "DynamicQuantizeLSTM 20x64 128",
            "DynamicQuantizeLSTM",
            21,
            [
                numbers(20, 1, 64),
                whole(np.int8, 1, 64, 512),
                whole(np.int8, 1, 128, 512),
                *[None] * 5,
                *_of_bytes(),
                *_of_bytes(),
            ],
            {"hidden_size": 128},
            (1, 2, 8, 9, 10, 11),
            3,
            _STEPS,
            "com.microsoft",
        ),
        *(
            Layer(
                f"Einsum {equation}",
                "Einsum",
                12,
                [numbers(*shape) for shape in shapes],
                {"equation": equation},
            )
            for equation, shapes in EQUATIONS
        ),
        *(
            Layer(
                f"TopK {k} of {shape} axis {axis}",
                "TopK",
                11,
                [numbers(*shape), np.array([k])],
                {"axis": axis},
                (1,),
                2,
                4,
            )
            for k, shape, axis in (
                (1, (1000, 10), -1),
                (5, (1000, 10), -1),
                (3, (1000, 32), -1),
                (5, (100, 128), -1),
                (2, (128, 8), -1),
                (4, (16, 128, 64), -1),
                (5, (64, 32, 32), 0),
                (1, (1000, 32), -1),
                (2, (32, 100), -1),
                (5, (1, 100), -1),
            )
        ),
    ]


EQUATIONS: Sequence[tuple[str, Sequence[tuple[int, ...]]]] = (
    ("bhid,bhjd->bhij", ((1, 12, 128, 64), (1, 12, 128, 64))),
    ("bihd,bjhd->bhij", ((1, 128, 12, 64), (1, 128, 12, 64))),
    ("bhij,bjhd->bihd", ((1, 12, 128, 128), (1, 128, 12, 64))),
    ("ijb,jkb->ikb", ((64, 64, 32), (64, 64, 32))),
    ("bij,jk->bik", ((8, 64, 128), (128, 128))),
    ("bnd,bmd->bnm", ((4, 128, 64), (4, 128, 64))),
    ("bhwc,hkc->bhwk", ((8, 14, 14, 64), (14, 14, 64))),
    ("bij->bji", ((8, 128, 128),)),
    ("bij->b", ((8, 128, 128),)),
    ("ii->i", ((512, 512),)),
    ("i,j->ij", ((512,), (512,))),
    ("bi,bi->b", ((128, 512), (128, 512))),
    ("bij,bij->bij", ((8, 128, 128), (8, 128, 128))),
    ("bhw,bc->bchw", ((4, 56, 56), (4, 64))),
    ("bij,bjk,bkl->bil", ((4, 64, 64), (4, 64, 64), (4, 64, 64))),
)


def _model(layer: Layer) -> tuple[bytes, dict[str, np.ndarray]]:
    """The file of one node, and what it is given."""
    names = ["" if one is None else f"x{number}" for number, one in enumerate(layer.inputs)]
    arrays = {name: one for name, one in zip(names, layer.inputs, strict=True) if one is not None}
    weights = {f"x{number}" for number in layer.constant}
    made = [f"y{number}" for number in range(layer.outputs)]
    graph = helper.make_graph(
        [helper.make_node(layer.operation, names, made, domain=layer.domain, **layer.attributes)],
        "one",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape
            )
            for name, one in arrays.items()
            if name not in weights
        ],
        [ValueInfoProto(name=name) for name in made],
        [numpy_helper.from_array(arrays[name], name) for name in sorted(weights)],
    )
    model = helper.make_model(
        graph,
        opset_imports=[
            helper.make_opsetid("", layer.opset),
            helper.make_opsetid("com.microsoft", 1),
        ],
        ir_version=10,
    )
    return model.SerializeToString(), {
        name: one for name, one in arrays.items() if name not in weights
    }


def ours(data: bytes, feeds: dict[str, np.ndarray]) -> Callable[[], object]:
    """The call that a plan binds, on the node's arguments."""
    plan = plan_of(loopscope.read_model(data))
    program, values = plan.main, plan.fresh_values(0)
    for node in plan.model.graph.parameters:
        values[program.parameters[node.id]] = feeds[node.name]
    (instruction,) = (one for one in program.instructions)
    arguments, call = [values[slot] for slot in instruction.inputs], instruction.call
    assert call is not None
    return lambda: call(*arguments)


def onnx_runtimes(data: bytes, feeds: dict[str, np.ndarray]) -> Callable[[], object]:
    """A run of a session with this one operation, from and to memory that stays."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


def main(wanted: Sequence[str]) -> int:
    """Prints a line for each layer; 1 when one misses its bar."""
    missed = 0
    print(f"{'layer':34}{'ours':>11}{'x ORT':>12}{'bar':>6}")
    for layer in layers():
        if wanted and not any(word in layer.title for word in wanted):
            continue
        model = _model(layer)
        with computing():
            missed += printed_row(layer.title, [ours(*model), onnx_runtimes(*model)], layer.bar)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
