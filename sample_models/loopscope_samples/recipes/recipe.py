"""What a recipe gives: a model, and the named input sets that make its control flow differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import loopscope

if TYPE_CHECKING:
    import openvino as ov

InputSet = Mapping[str, Any]
"""For each input what ``np.asarray`` takes: an array, or a scalar of numpy."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A sample before it is written: ``name`` becomes its folder, each set a file in
    ``inputs/``.
    """

    name: str
    model: loopscope.Model | ov.Model
    """Built with ``loopscope.builder``, or converted by OpenVINO from what a framework exported."""
    sets: Mapping[str, InputSet]
    data: InputSet | None = None
    """Many inputs at once: arrays whose first axis counts them. It becomes ``data.npz``."""
