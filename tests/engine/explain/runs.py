"""Runs of the samples to explain."""

from __future__ import annotations

import loopscope
from loopscope_samples import samples

_SAMPLES = {sample.name: sample for sample in samples()}


def begun(name: str, chosen: str = "") -> loopscope.Debugger:
    """A sample on one of its input sets, at its first moment."""
    sample = _SAMPLES[name]
    inputs = next(one for one in sample.sets if not chosen or one.name == chosen)
    return loopscope.Debugger(loopscope.read_model(sample.model), inputs.arrays())


def finished(name: str, chosen: str = "") -> loopscope.Debugger:
    """A sample that has run to its end."""
    debugger = begun(name, chosen)
    debugger.run()
    return debugger
