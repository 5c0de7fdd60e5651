"""Suggestion of a command when a runtime runs a loop another number of times.

The command runs the model here, rounded to the float types that devices compute in.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import loopscope
from loopscope.comparison import COMPARED
from loopscope.errors import EngineError
from loopscope_app.describe.wording import DEVICES


def rounding_suggestion(
    path: str,
    inputs_option: str,
    model: loopscope.Model,
    inputs: Mapping[str | int, object],
    seconds: float,
) -> list[str]:
    """Return a line with such a command, or nothing if no rounded run finishes within ``seconds``.

    ``path`` and ``inputs_option`` are the model and the inputs as the command line has them.
    """
    finishing = [to for to in DEVICES if _finishes(model, inputs, to, seconds)]
    if not finishing:
        return []
    words = f" --inputs {shlex.quote(inputs_option)}" if inputs_option else ""
    command = f"loopscope drift {shlex.quote(path)}{words} --round '*={finishing[0]}'"
    reason = "Narrower floats often make a loop run another number of times."
    return [
        f"  {reason} To run it here with the device's precision ({', '.join(finishing)}): {command}"
    ]


def _finishes(
    model: loopscope.Model, inputs: Mapping[str | int, object], to: str, seconds: float
) -> bool:
    try:
        debugger = loopscope.Debugger(
            model,
            inputs,
            limits=loopscope.Limits(seconds=seconds),
            record=COMPARED,
            rounding={"*": to},
        )
    except EngineError:
        return False
    debugger.run()
    return debugger.state == "finished"
