"""Runs of samples that pages are made of."""

from __future__ import annotations

import loopscope
from loopscope_samples import sample


def run_of(name: str) -> loopscope.Debugger:
    found = sample(name)
    assert found is not None
    debugger = loopscope.Debugger(
        loopscope.read_model(found.model), next(iter(found.sets)).arrays()
    )
    debugger.run()
    debugger.seek(0)
    return debugger
