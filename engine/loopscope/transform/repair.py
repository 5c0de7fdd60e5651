"""Repairs of faults that silently change the results of a model in a runtime."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from loopscope.checks.check import check
from loopscope.checks.rules.runtimes import overwritten_parameters
from loopscope.checks.subject import CheckedRegion, Subject
from loopscope.errors import BuildError
from loopscope.ir.model import Model
from loopscope.ir.replace import replace
from loopscope.ops.catalogue import CATALOGUE
from loopscope.transform.copied_states import overwriting_regions, with_identities
from loopscope.transform.first_condition import with_first_condition

OVERWRITTEN, DO_WHILE = "LS906", "LS931"
REPAIRABLE = (OVERWRITTEN, DO_WHILE)
"""Codes of the faults that can be repaired."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A change that repairs a fault."""

    code: str
    address: str
    """Static address of the loop."""
    change: str
    """The change in one sentence."""
    reason: str
    """Effect of the fault in one sentence."""
    refused: str = ""
    """Reason why the fault is not repaired; empty if it is."""


def repair(model: Model, codes: Collection[str] = REPAIRABLE) -> tuple[Model, tuple[Repair, ...]]:
    """Return the model without the faults of these codes, and the changes.

    LS906: an Identity between a value and the carried value that copies it; the results by the
    specification do not change. LS931: the condition of a loop is computed before the loop too, so
    that the loop may run 0 times, as a while loop does.
    """
    repairs: list[Repair] = []
    repaired = model
    if OVERWRITTEN in codes and model.dialect == "openvino":
        for region in overwriting_regions(model):
            repaired = with_identities(repaired, _same_region(repaired, region))
            repairs.append(_identity_repair(region))
    if DO_WHILE in codes:
        for address in _do_while_loops(model):
            region = _loop_at(repaired, address)
            repair, repaired = _condition_repair(repaired, region, address)
            repairs.append(repair)
    changed = any(not repair.refused for repair in repairs)
    return (replace(repaired, file="") if changed else model), tuple(repairs)


def _same_region(model: Model, region: CheckedRegion) -> CheckedRegion:
    return _loop_at(model, region.within.address.rpartition("/")[0])


def _loop_at(model: Model, address: str) -> CheckedRegion:
    return next(
        region
        for region in Subject(model, CATALOGUE).iterating
        if region.within.address.rpartition("/")[0] == address
    )


def _do_while_loops(model: Model) -> list[str]:
    return [
        diagnostic.where.address
        for diagnostic in check(model, CATALOGUE).diagnostics
        if diagnostic.code == DO_WHILE
    ]


def _identity_repair(region: CheckedRegion) -> Repair:
    nodes = region.body.graph.by_id
    names = [
        f"{nodes[source].name!r} and {nodes[layer].name!r}"
        for layer, source in overwritten_parameters(region).items()
    ]
    return Repair(
        OVERWRITTEN,
        region.within.address.rpartition("/")[0],
        f"An Identity is put between {', '.join(names)}.",
        "OpenVINO's CPU overwrites the first value before it copies it to the second.",
    )


def _condition_repair(model: Model, region: CheckedRegion, address: str) -> tuple[Repair, Model]:
    change = "The condition is also computed from the initial values, before the loop."
    reason = (
        "The loop runs at least once; a while loop whose condition is false at the start does not."
    )
    try:
        repaired = with_first_condition(model, region)
    except BuildError as error:
        return Repair(DO_WHILE, address, change, reason, str(error)), model
    return Repair(DO_WHILE, address, change, reason), repaired
