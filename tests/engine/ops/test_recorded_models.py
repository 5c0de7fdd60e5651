"""Models of scikit-learn, LightGBM and XGBoost predict here what the libraries themselves
predicted when they were recorded.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import loopscope
from tests.engine.ops.recorded.make import FOLDER

FILES = sorted(file for file in FOLDER.glob("*.npz") if file.stem != "recurrences")


def test_models_are_recorded() -> None:
    assert len(FILES) == 13


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_as_the_library_and_onnx_runtime_predict(file: Path) -> None:
    """To 1e-4, as the exporters write f32 where some libraries compute with f64; labels exactly."""
    with np.load(file) as held:
        data = held["model"].tobytes()
        inputs = {name[3:]: _texts(held[name]) for name in held if name.startswith("in ")}
        predicted = {name[4:]: held[name] for name in held if name.startswith("out ")}
    model = loopscope.read_model(data)
    made = {
        one.name: value
        for one, value in zip(model.outputs, loopscope.run(model, inputs).outputs, strict=True)
    }
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    theirs = dict(
        zip((one.name for one in session.get_outputs()), session.run(None, inputs), strict=True)
    )
    for name, expected in predicted.items():
        if expected.dtype.kind in "fc":
            np.testing.assert_allclose(
                made[name].reshape(expected.shape), expected, rtol=1e-4, atol=1e-4
            )
            np.testing.assert_allclose(made[name], theirs[name], rtol=1e-4, atol=1e-5)
        else:
            assert made[name].reshape(expected.shape).tolist() == expected.tolist()
            assert made[name].tolist() == theirs[name].tolist()


def _texts(array: np.ndarray) -> np.ndarray:
    return array.astype(object) if array.dtype.kind == "U" else array
