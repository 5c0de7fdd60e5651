"""Runs of samples that pages are made of."""

from __future__ import annotations

import engine
from sample_models import sample


def run_of(name: str) -> engine.Debugger:
    found = sample(name)
    assert found is not None
    debugger = engine.Debugger(engine.read_model(found.model), next(iter(found.sets)).arrays())
    debugger.run()
    debugger.seek(0)
    return debugger
