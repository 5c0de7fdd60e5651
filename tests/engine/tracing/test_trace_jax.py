"""Traces of loops of JAX, where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope

jax = pytest.importorskip("jax")
WEIGHTS = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32) * 0.7
INPUTS = np.random.default_rng(1).standard_normal((50, 4)).astype(np.float32)


def scanned(path: Path, dtype: Any) -> loopscope.Debugger:
    def step(state: Any, x: Any) -> Any:
        state = jax.numpy.tanh(WEIGHTS.astype(dtype) @ state + x)
        callback = loopscope.trace_callback("scan", carried="state")
        jax.debug.callback(callback, state=state, ordered=True)
        return state, state

    inputs = jax.numpy.asarray(INPUTS, dtype)
    with loopscope.trace(path):
        jax.jit(lambda xs: jax.lax.scan(step, jax.numpy.zeros(4, dtype), xs))(inputs)
    return loopscope.load(path)


def test_a_scan_in_f32_and_bf16(tmp_path: Path) -> None:
    runs = [
        scanned(tmp_path / f"{number}.loopscope", dtype)
        for number, dtype in enumerate((jax.numpy.float32, jax.numpy.bfloat16))
    ]
    assert runs[0].control_flow[0].iterations == 50
    before, state = (
        runs[1].value(f"main/scan[{i}]/body/{n}") for i, n in ((9, "state_before"), (8, "state"))
    )
    assert before.tobytes() == state.tobytes()
    assert state.dtype.name == "bfloat16"
    result = loopscope.drift(*runs)
    assert result.first is not None
    assert result.first.one == "main/scan/body/state"
    assert result.first.worst.relative < 0.1


def test_a_while_loop_without_a_trace_records_nothing() -> None:
    callback = loopscope.trace_callback("while")
    callback(1, x=2)
