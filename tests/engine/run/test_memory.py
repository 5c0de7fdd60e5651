"""What a run frees, the next one writes into."""

from __future__ import annotations

import resource

import numpy as np

import engine
from tests.engine.drafts import BOOL, F32, I64, Draft, loop


def test_a_run_that_repeats_another_asks_for_no_fresh_memory():
    body = Draft()
    x = body.parameter("x", F32, (1 << 18,))
    out = body.result(body.op("Add", x, body.const([1.0])))
    main = Draft()
    fed = main.parameter("x", F32, (1 << 18,))
    again = body.result(body.const(True, BOOL))
    main.result(loop(main, body, main.const(40, I64), main.const(True, BOOL), again=again, carried=[(fed, x, out)], last=[out]))
    model, inputs = main.model(), [np.zeros(1 << 18, np.float32)]

    def fresh_pages() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        debugger = engine.Debugger(model, inputs, record=engine.Record(everything=True))
        debugger.run()
        assert debugger.machine.ledger.bytes > 40 * 2**20
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    fresh_pages()
    assert fresh_pages() < 1000, "40 MB are 10,000 pages"
