"""One model with every kind of place to stop at: a loop in a loop, an If, and operations around
them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopscope
from tests.engine.drafts import BOOL, F32, I64, Draft, branch, loop


def model(outer_trips: int = 3, inner_trips: int = 2) -> loopscope.Model:
    """``double`` x; ``outer`` times: (``inner`` times: ``grow`` by 1), then ``choice``: above
    6.5 ``halve``, else ``keep``; ``last``.
    """
    innermost = Draft()
    value = innermost.parameter("value", F32, ())
    grown = innermost.result(
        innermost.op("Add", value, innermost.const(1.0, name="one"), name="grow"), "grown"
    )
    go_on = innermost.result(innermost.const(True, BOOL), "go_on")
    then, otherwise = Draft(), Draft()
    p, q = then.parameter("p", F32, ()), otherwise.parameter("q", F32, ())
    halved = then.result(then.op("Multiply", p, then.const(0.5), name="halve"))
    kept = otherwise.result(otherwise.op("Add", q, otherwise.const(0.0), name="keep"))
    body = Draft()
    state = body.parameter("state", F32, ())
    inner = loop(
        body,
        innermost,
        body.const(inner_trips, I64),
        body.const(True, BOOL),
        again=go_on,
        carried=[(state, value, grown)],
        last=[grown],
        name="inner",
    )
    above = body.op("Greater", inner, body.const(6.5), name="above")
    chosen = body.region(
        "If",
        [above, inner],
        [branch("then", then, [(1, p)], [halved]), branch("else", otherwise, [(1, q)], [kept])],
        1,
        name="choice",
        opset=8,
    )
    out, again = body.result(chosen, "out"), body.result(body.const(True, BOOL), "again")
    main = Draft()
    x = main.parameter("x", F32, ())
    doubled = main.op("Multiply", x, main.const(2.0), name="double")
    made = loop(
        main,
        body,
        main.const(outer_trips, I64),
        main.const(True, BOOL),
        again=again,
        carried=[(doubled, state, out)],
        last=[out],
        joined=[(out, {})],
        name="outer",
    )
    main.result(main.op("Add", made, main.const(100.0), name="last"), "y")
    return main.model()


def debugger(x: float = 1.0, **options: Any) -> loopscope.Debugger:
    return loopscope.Debugger(model(), [np.float32(x)], **options)


# 2 -> 4 (keep) -> 6 (keep) -> 8 (halve: 4)
TRAIL = [
    "main/double",
    "main/outer",
    *(
        place
        for iteration, arm in enumerate(("else/keep", "else/keep", "then/halve"))
        for place in (
            f"main/outer[{iteration}]/body/inner",
            f"main/outer[{iteration}]/body/inner[0]/body/grow",
            f"main/outer[{iteration}]/body/inner[0]/body",
            f"main/outer[{iteration}]/body/inner[1]/body/grow",
            f"main/outer[{iteration}]/body/inner[1]/body",
            f"main/outer[{iteration}]/body/above",
            f"main/outer[{iteration}]/body/choice",
            f"main/outer[{iteration}]/body/choice/{arm}",
            f"main/outer[{iteration}]/body/choice/{arm.partition('/')[0]}",
            f"main/outer[{iteration}]/body",
        )
    ),
    "main/last",
]
"""Where each step stands, in order."""
