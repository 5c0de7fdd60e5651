"""What to try where a runtime runs a loop another number of times than we do: our run, rounded to the floats that devices compute in."""

from __future__ import annotations

import shlex

from app.describe.wording import DEVICES


def offered(model: str, inputs: str) -> str:
    """A line with the command that makes that run; ``inputs`` as they were given."""
    given = f" --inputs {shlex.quote(inputs)}" if inputs else ""
    command = f"loopscope drift {shlex.quote(model)}{given} --round '*={DEVICES[0]}'"
    why = "Narrower floats often make a loop run another number of times."
    return f"  {why} To run it here with the device's precision ({', '.join(DEVICES)}): {command}"
