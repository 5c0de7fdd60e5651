"""Behaviour of the model's runtime on inputs with which our run does not finish."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from loopscope.debug.inputs import Inputs
from loopscope.debug.run import Run
from loopscope.errors import EngineError, elided
from loopscope.native.run_once import never
from loopscope.ops.values import is_tensor
from loopscope.peers.comparing import shape_text
from loopscope.peers.other_runtimes import CALLED, Patience, ask_outputs, runtime_of

_MAX_SHAPES = 4


def runtime_alone(
    run: Run,
    inputs: Inputs,
    *,
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> str:
    """Return a sentence: the runtime fails as well, with its reason, or runs the model, with the
    output shapes.

    Return an empty text if the runtime is not installed. Raise ``EngineError`` if ``stopped``
    returns True before the runtime ends.
    """
    if not runtime_of(run.model):
        return ""
    try:
        runtime, outputs = ask_outputs(run.model, inputs, Patience(seconds, stopped), document)
    except EngineError as error:
        if stopped():
            raise
        called = CALLED[run.model.dialect]
        reason = str(error).removeprefix(f"{called} does not run the model: ").removesuffix(".")
        return f"{called} does not run the model with these inputs either: {reason}."
    shapes = [
        f"{elided(signature.name)!r} {shape_text(np.asarray(value))}"
        if is_tensor(value)
        else f"{elided(signature.name)!r}"
        for signature, value in zip(run.model.outputs, outputs, strict=True)
    ]
    more = f" and {len(shapes) - _MAX_SHAPES:,} more" if len(shapes) > _MAX_SHAPES else ""
    listed = ", ".join(shapes[:_MAX_SHAPES])
    return f"{runtime} runs the model with these inputs: it gives {listed}{more}."
