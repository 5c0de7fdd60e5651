"""One helper for tests of built graphs: written, read back equal, and run by OpenVINO with the
same outputs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

import loopscope
from loopscope.checks.check import check
from loopscope.ir.element_type import ElementType
from loopscope.ir.equal import difference
from loopscope.ops.catalogue import CATALOGUE

_CONFIG = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}


def run_both(
    model: loopscope.Model, feeds: Sequence[Any] = (), *, tolerance: float = 1e-5
) -> loopscope.Result:
    """Our result; asserts that inferred shapes hold, that the file means the same model, and
    that OpenVINO's outputs are ours.
    """
    result = loopscope.run(model, feeds)
    for signature, output in zip(model.outputs, result.outputs, strict=True):
        assert signature.element_type is ElementType.of(output)
        assert signature.shape.contains(output.shape), (
            f"inferred {signature.shape}, computed {output.shape}"
        )
    assert check(model, CATALOGUE).ok
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.xml"
        loopscope.write_model(model, path)
        assert difference(model, loopscope.read_model(path)) == ""
        theirs = openvinos(path, [np.array(feed) for feed in feeds])
    for signature, mine, other in zip(model.outputs, result.outputs, theirs, strict=True):
        assert mine.shape == other.shape, (
            f"{signature.name}: ours {mine.shape}, OpenVINO's {other.shape}"
        )
        np.testing.assert_allclose(
            mine, other, rtol=tolerance, atol=tolerance, err_msg=signature.name
        )
    return result


def openvinos(path: Path, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
    """OpenVINO's outputs from a model that is compiled afresh: a second run may show the data of
    the first.
    """
    request = (
        ov.Core().compile_model(ov.Core().read_model(path), "CPU", _CONFIG).create_infer_request()
    )
    request.infer({number: ov.Tensor(feed) for number, feed in enumerate(feeds)})
    return [
        np.array(request.get_output_tensor(number).data)
        for number in range(len(request.model_outputs))
    ]
