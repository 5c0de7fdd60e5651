"""A command to try where a runtime runs a loop another number of times: our run, rounded to the
floats that devices compute in.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import loopscope
from loopscope.comparison import COMPARED
from loopscope.errors import EngineError
from loopscope_app.describe.wording import DEVICES


def offered(
    path: str,
    given: str,
    model: loopscope.Model,
    inputs: Mapping[str | int, object],
    seconds: float,
) -> list[str]:
    """Return a line with a command that makes such a run; none where no such run finishes within
    ``seconds``.

    ``path`` and ``given`` are the model and the inputs as the command line has them.
    """
    finishing = [to for to in DEVICES if _finishes(model, inputs, to, seconds)]
    if not finishing:
        return []
    words = f" --inputs {shlex.quote(given)}" if given else ""
    command = f"loopscope drift {shlex.quote(path)}{words} --round '*={finishing[0]}'"
    why = "Narrower floats often make a loop run another number of times."
    return [
        f"  {why} To run it here with the device's precision ({', '.join(finishing)}): {command}"
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
