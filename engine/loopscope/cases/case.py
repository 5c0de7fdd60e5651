"""A case: a model with inputs and the outputs that are expected for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loopscope.debug.run import Run
from loopscope.errors import AddressError, EngineError, ValueUnavailable, shorten
from loopscope.ir.address import Address, Segment
from loopscope.ir.model import Model
from loopscope.ir.walk import graphs
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.declare import Role
from loopscope.ops.dialect import catalogue_for
from loopscope.transform.cut import addresses, part_of, with_iterations
from loopscope.transform.extract import with_values


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A model with a value for each input, and the expected outputs."""

    model: Model
    inputs: Mapping[str, Any]
    """Value of each input, by name, in order."""
    expected: Mapping[str, Any]
    """Expected value of each output, by name, in order. An output that was not computed is
    absent.
    """
    place: str = ""
    """Address that the case was cut out at, with iterations; empty for a whole model."""
    missing: str = ""
    """Reason why outputs are absent; empty if none is."""


def recorded_case(
    run: Run,
    address: str = "",
    *,
    iteration: int | None = None,
    around: int = 0,
    start: str = "",
    end: str = "",
    catalogue: Catalogue = CATALOGUE,
) -> Case:
    """Return a part of the model of a run, as ``loopscope.cut`` does, with its recorded values.

    ``iteration`` is that of the innermost loop around the part. An address may name iterations
    too. Iterations that nothing names are those at the cursor, at the end of a run the last.

    Raise ``AddressError`` for an address that names no part, ``ValueUnavailable`` if the part did
    not run in that iteration, and ``EngineError`` if a state inside it was not recorded.
    """
    model = run.model
    part = part_of(model, address, around=around, start=start, end=end, catalogue=catalogue)
    _refuse_inner_states(part.model, catalogue_for(part.model.dialect, catalogue))
    prefix = _graph_with_iterations(model, part.graph, with_iterations(model, address or start))
    if iteration is not None:
        prefix = _in_iteration(model, prefix, iteration)
    run.rows_of(Address.parse(f"{prefix}/part"))  # the graph must have run
    graph = next(place.graph for place in graphs(model) if place.address == part.graph)
    input_addresses, output_addresses = addresses(part, graph, prefix)
    inputs = [run.value(address) for address in input_addresses]
    values: list[Any] = []
    missing = ""
    for output in output_addresses:
        try:
            values.append(run.value(output))
        except ValueUnavailable as error:
            values.append(_NOT_COMPUTED)
            missing = run.failure or str(error)
    cut = with_values(part.model, inputs)
    return Case(
        cut,
        {signature.name: value for signature, value in zip(cut.inputs, inputs, strict=True)},
        {
            signature.name: value
            for signature, value in zip(cut.outputs, values, strict=True)
            if value is not _NOT_COMPUTED
        },
        prefix if part.graph == Address.parse(prefix).static else part.graph,
        missing,
    )


_NOT_COMPUTED = object()


def _refuse_inner_states(part: Model, catalogue: Catalogue) -> None:
    """Raise ``EngineError`` for random numbers or a variable in an inner graph of a part.

    Those of the part's own graph are inputs with recorded values. Inner ones would begin anew, and
    the part would compute other values than the model.
    """
    for place in graphs(part):
        for node in place.graph.nodes if place.owner is not None else ():
            operation = catalogue.find(node.type, node.opset)
            if operation is None:
                continue
            is_variable = operation.role in (Role.READ_VALUE, Role.ASSIGN)
            if is_variable or operation.stateful:
                subject = "uses a variable" if is_variable else "draws random numbers"
                raise EngineError(
                    f"{shorten(node.name, 60)!r} in {shorten(place.address)!r} {subject}, and the "
                    "state at its beginning was not recorded: expected a part without it, or the "
                    "graph around it"
                )


def _graph_with_iterations(model: Model, graph: str, address: str) -> str:
    """Return the address of a graph with the iterations that ``address`` has around it."""
    segments = Address.parse(address).segments[: graph.count("/") + 1]
    return str(Address(segments))


def _in_iteration(model: Model, prefix: str, iteration: int) -> str:
    """Return the address of a graph in an iteration of the innermost loop around it."""
    segments = list(Address.parse(prefix).segments)
    loops = {
        place.address.rpartition("/")[0]
        for place in graphs(model)
        if place.owner is not None and place.owner.is_loop
    }
    for number in range(len(segments) - 2, 0, -2):
        if "/".join(segment.label for segment in segments[: number + 1]) in loops:
            known = segments[number].iteration
            if known is not None and known != iteration:
                raise AddressError(
                    f"{shorten(prefix)!r} names iteration {known}, and iteration {iteration} is "
                    "requested: use one of them"
                )
            segments[number] = Segment(segments[number].label, iteration)
            return str(Address(tuple(segments)))
    raise AddressError(f"{shorten(prefix)!r} is not inside a loop, and so has no iterations")
