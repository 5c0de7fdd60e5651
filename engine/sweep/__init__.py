"""One model over many inputs: a row for each, one after another, in lanes, or on a cluster."""

from __future__ import annotations

from engine.sweep.samples import Samples, samples_of
from engine.sweep.summary import Summary
from engine.sweep.sweep import Sweep, sweep

__all__ = ["Samples", "Summary", "Sweep", "samples_of", "sweep"]
