"""Runs of the samples to explain."""

from __future__ import annotations

import engine
from sample_models import samples

_SAMPLES = {sample.name: sample for sample in samples()}


def begun(name: str, chosen: str = "") -> engine.Debugger:
    """A sample on one of its input sets, at its first moment."""
    sample = _SAMPLES[name]
    inputs = next(one for one in sample.sets if not chosen or one.name == chosen)
    return engine.Debugger(engine.read_model(sample.model), inputs.arrays())


def finished(name: str, chosen: str = "") -> engine.Debugger:
    """A sample that has run to its end."""
    debugger = begun(name, chosen)
    debugger.run()
    return debugger
