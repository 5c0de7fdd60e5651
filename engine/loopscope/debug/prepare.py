"""Preparation of a run: everything that a Debugger resolves before the first step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loopscope.debug import overrides_by_address as changing
from loopscope.debug.fetch_plan import Fetch, resolve_fetches
from loopscope.debug.inputs import Inputs
from loopscope.debug.start_state import Beginning
from loopscope.executor.machine.limits import Limits
from loopscope.executor.plan.optimisation_flags import EVERYTHING, Optimise
from loopscope.executor.plan.planner import plan_of
from loopscope.executor.plan.uncomputed_values import Overrides
from loopscope.executor.record.recording import Record
from loopscope.ir.model import Model
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.transform.rounding import round_model


@dataclass(frozen=True, slots=True, eq=False)
class PreparedRun:
    """A model with its plan, its overrides and the values that a run begins with."""

    model: Model
    """The model as it runs; with ``rounding``, the model that has the rounding in it."""
    overrides: Overrides
    """The plan, with the user's overrides."""
    beginning: Beginning
    unrounded: tuple[str, ...]
    """Addresses that ``rounding`` names but that retain their type, because only indices and shapes
    need them.
    """


def prepare(
    model: Model,
    inputs: Inputs = None,
    *,
    limits: Limits | None = None,
    record: Record | None = None,
    seed: int | None = None,
    changes: Mapping[str, Any] | None = None,
    rounding: Mapping[str, str] | None = None,
    fetches: Fetch | Sequence[Fetch] | None = None,
    whole: bool = True,
    optimise: Optimise = EVERYTHING,
    catalogue: Catalogue = CATALOGUE,
) -> PreparedRun:
    """Resolve rounding, fetches, inputs, overrides and limits. The arguments are those of
    ``Debugger``.

    Raises ``InvalidModel`` for a model that cannot run, ``InputError`` for an input or an override
    that does not fit, and ``AddressError`` for a fetch or an override that names no value.
    """
    unrounded: tuple[str, ...] = ()
    if rounding:
        rounded = round_model(model, rounding, catalogue)
        model, unrounded = rounded.model, rounded.unrounded
    request = resolve_fetches(
        plan_of(model, catalogue, optimise), inputs, fetches, whole=whole and fetches is None
    )
    beginning = Beginning(
        request.values,
        limits or Limits(),
        record or Record(),
        0 if seed is None else seed,
        part=fetches is not None or not whole,
    )
    return PreparedRun(model, changing.bind(request.plan, changes or {}), beginning, unrounded)
