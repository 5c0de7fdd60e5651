"""One-node models of the domain com.microsoft, or of ONNX itself, run here and by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper

import loopscope
from loopscope.ops.declare import typed
from loopscope.ops.onnx_catalogue import ONNX
from tests.engine.ops.oracle import check_promises

Inputs = Sequence[np.ndarray | None]


@dataclass(frozen=True, slots=True)
class Case:
    """A node: type, inputs (None: left out), attributes, and for each output whether it is
    there.
    """

    type: str
    inputs: Inputs
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: tuple[bool, ...] = (True,)
    domain: str = "com.microsoft"
    rtol: float = 2e-5
    """Single precision, summed in another order."""
    atol: float = 2e-6
    quanta: int = 0
    """By how much whole numbers may differ: 1 where a float in between lies so near a half that
    another order rounds it the other way.
    """
    opset: int = 17
    """Of ONNX itself."""
    f32_outputs: tuple[int, ...] = ()
    """Outputs whose type ONNX Runtime does not find out by itself."""
    constant: tuple[int, ...] = ()
    """Inputs that are constants of the model: ONNX Runtime takes some no other way."""

    @property
    def feeds(self) -> dict[str, np.ndarray]:
        return {
            f"x{number}": one
            for number, one in enumerate(self.inputs)
            if one is not None and number not in self.constant
        }

    @property
    def model(self) -> bytes:
        """With the shapes of its inputs: ONNX Runtime asks for some of them before it runs."""
        names = ["" if one is None else f"x{number}" for number, one in enumerate(self.inputs)]
        made = [f"y{number}" if there else "" for number, there in enumerate(self.outputs)]
        kinds = {name: _kind(one) for name, one in self.feeds.items()}
        graph = helper.make_graph(
            [helper.make_node(self.type, names, made, domain=self.domain, **self.attributes)],
            "one",
            [
                helper.make_tensor_value_info(name, kind, self.feeds[name].shape)
                for name, kind in kinds.items()
            ],
            [self._output(number) for number, name in enumerate(made) if name],
            [
                numpy_helper.from_array(one, f"x{number}")
                for number, one in enumerate(self.inputs)
                if one is not None and number in self.constant
            ],
        )
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        data: bytes = helper.make_model(
            graph, opset_imports=opsets, ir_version=10
        ).SerializeToString()
        return data

    def _output(self, number: int) -> ValueInfoProto:
        if number in self.f32_outputs:
            return helper.make_tensor_value_info(f"y{number}", TensorProto.FLOAT, None)
        return ValueInfoProto(name=f"y{number}")

    def here(self) -> tuple[Any, ...]:
        return loopscope.run(loopscope.read_model(self.model), self.feeds).outputs

    def there(self) -> list[Any]:
        return by_runtime(self.model, self.feeds)

    def agree(self) -> None:
        """``AssertionError`` where an output differs in type, shape or, beyond the tolerance, in
        a number; or from what is inferred.
        """
        here, there = self.here(), self.there()
        assert len(here) == len(there)
        self.check_promises(here)
        for mine, theirs in zip(here, there, strict=True):
            assert mine.dtype == theirs.dtype
            assert mine.shape == theirs.shape
            if theirs.dtype.kind in "biu":
                assert (
                    np.abs(mine.astype(np.int64) - theirs.astype(np.int64)).max(initial=0)
                    <= self.quanta
                ), f"{mine}, expected {theirs}"
            elif theirs.dtype.kind == "f":
                np.testing.assert_allclose(mine, theirs, rtol=self.rtol, atol=self.atol)
            else:
                np.testing.assert_array_equal(mine, theirs)

    def check_promises(self, outputs: Sequence[Any]) -> None:
        operation = ONNX.find(
            self.type, f"{self.domain or 'ai.onnx'} {1 if self.domain else self.opset}"
        )
        assert operation is not None
        if all(self.outputs):
            check_promises(operation, self.inputs, typed(operation, self.attributes), outputs)


def by_runtime(model: bytes, feeds: Mapping[str, np.ndarray]) -> list[Any]:
    """What ONNX Runtime gives of a model as it stands, without optimizing it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    made: list[Any] = onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"]
    ).run(None, dict(feeds))
    return made


def _kind(array: np.ndarray) -> int:
    return int(
        TensorProto.STRING
        if array.dtype == object
        else helper.np_dtype_to_tensor_dtype(array.dtype)
    )
