"""Preparation of a run: its inputs, fetched tensors, given values, and the plan for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from loopscope.debug import overrides_by_address as changing
from loopscope.debug.breakpoints import Breakpoint, find
from loopscope.debug.inputs import Inputs, bind, bind_by_name, convert_to, named_inputs
from loopscope.debug.lookup import slot_at
from loopscope.debug.progress import Beginning
from loopscope.errors import AddressError, InputError, elided, shorten
from loopscope.executor.machine.limits import Limits
from loopscope.executor.plan.optimisation_flags import EVERYTHING, Optimise
from loopscope.executor.plan.plan import Plan, Program
from loopscope.executor.plan.planner import plan_of
from loopscope.executor.plan.pruning import everything, needed, part_of
from loopscope.executor.plan.slots import Slot
from loopscope.executor.plan.uncomputed_values import Overrides
from loopscope.executor.record.recording import Record
from loopscope.ir.address import ANY_ITERATION, ROOT, Address, graphs
from loopscope.ir.model import Model, Node, OutputRef
from loopscope.ir.named_tensors import layer_named, tensor_named
from loopscope.ir.recorded_rows import is_trace
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.transform.rounding import round_model


@runtime_checkable
class TensorLike(Protocol):
    """A tensor of ``loopscope.builder``."""

    @property
    def source(self) -> OutputRef: ...

    @property
    def frame(self) -> Any: ...


Fetch = str | TensorLike
_MAX_PARTS = 8
"""Maximum number of pruned plans per plan; each holds its generated code."""


@dataclass(frozen=True, slots=True, eq=False)
class FetchedTensor:
    """A tensor that is fetched."""

    name: str
    """The requested name; the address for a tensor of ``loopscope.builder``."""
    program: Program
    slot: Slot
    address: Address | None
    """None for a tensor of the outermost graph."""

    def after(self, plan: Plan) -> Breakpoint | None:
        """Return the moment after the tensor was computed; None if that is the end of the run."""
        iterations: tuple[int | None, ...] = ()
        program = plan.program_by_address[self.program.address]
        if self.address is not None:
            iterations = (
                find(plan, self.address)[2]
                if program.producer.get(self.slot) is not None
                else _loops(plan, self.address)
            )
        number = program.producer.get(self.slot)
        all_known = all(iteration is not None for iteration in iterations)
        return (
            Breakpoint(
                0, "", "address", None, program, 0 if number is None else number + 1, iterations
            )
            if all_known
            else None
        )


@dataclass(frozen=True, slots=True, eq=False)
class FetchPlan:
    """A plan and the values that it begins with."""

    plan: Plan
    places: tuple[FetchedTensor, ...] | None
    """Fetched tensors; None for the model's outputs."""
    values: Mapping[Slot, Any]

    @property
    def ends_early(self) -> bool:
        """True if all fetched tensors may be computed before the end of the run."""
        return self.places is not None and any(place.address is not None for place in self.places)


def resolve_fetches(
    plan: Plan, inputs: Inputs, fetches: object = None, *, whole: bool = False
) -> FetchPlan:
    """Return the plan for the fetches and inputs.

    Raises ``AddressError`` for a fetch that does not name exactly one tensor, and ``InputError``
    for unsuitable inputs. ``whole`` also runs operations that no output needs.
    """
    model = plan.model
    # Nothing of a trace is unneeded: it contains what the program chose to record.
    whole = whole or (fetches is None and is_trace(model))
    by_name = bind_by_name(model, inputs) if fetches is None else None
    if by_name is not None:
        part = _cached_part(plan, None, {}, plan.optimise.prune and not whole)
        slots = plan.main.parameters
        return FetchPlan(part, None, {slots[layer]: array for layer, array in by_name.items()})
    places = (
        None if fetches is None else tuple(_place(plan, fetch) for fetch in each_fetch(fetches))
    )
    model_inputs, fed_tensors = named_inputs(model, inputs, lambda key: _fed_tensor(model, key))
    feeds = {
        plan.main.slots[source.layer, source.output]: _convert_feed(plan, key, source, value)
        for source, (key, value) in fed_tensors.items()
    }
    part = _cached_part(plan, places, feeds, plan.optimise.prune and not whole)
    live = part.live if places is not None or feeds else None
    layers = (
        None
        if live is None
        else {
            layer
            for layer, slot in part.main.parameters.items()
            if slot in live and slot not in feeds
        }
    )
    arrays = bind(model, model_inputs, needed=layers)
    return FetchPlan(
        part,
        places,
        {**{plan.main.parameters[layer]: array for layer, array in arrays.items()}, **feeds},
    )


def _cached_part(
    plan: Plan, places: Sequence[FetchedTensor] | None, feeds: Mapping[Slot, Any], prune: bool
) -> Plan:
    """Return the pruned plan of a request, cached by fetched tensors and feeds."""
    key = (
        None
        if places is None
        else tuple((place.program.index, place.slot, place.address is None) for place in places),
        frozenset(feeds),
        prune,
    )
    try:
        return plan.parts[key] or plan
    except KeyError:
        part = _prune_plan(plan, places, feeds, prune)
    for oldest in list(plan.parts)[: 1 - _MAX_PARTS]:  # another thread may remove an entry
        plan.parts.pop(oldest, None)
    # A plan with a reference to itself would outlive its model.
    plan.parts[key] = None if part is plan else part
    return part


def _prune_plan(
    plan: Plan, places: Sequence[FetchedTensor] | None, feeds: Mapping[Slot, Any], prune: bool
) -> Plan:
    fetched = [] if places is None else [place.slot for place in places if place.address is None]
    if not prune:
        return (
            part_of(plan, everything(plan), feeds, fetched) if feeds or places is not None else plan
        )
    outputs = [(plan.main, slot) for slot in plan.main.results.values()]
    if places is not None:
        outputs = [(place.program, place.slot) for place in places]
    return part_of(plan, needed(plan, outputs, feeds, assigns=places is None), feeds, fetched)


def each_fetch(fetches: object) -> Iterator[Fetch]:
    for fetch in (
        [fetches]
        if isinstance(fetches, str | TensorLike) or not isinstance(fetches, Iterable)
        else fetches
    ):
        if not isinstance(fetch, str | TensorLike):
            raise AddressError(
                "fetches are tensor names, node names, addresses or tensors, "
                f"not {shorten(repr(fetch), 60)}"
            )
        yield fetch


def _place(plan: Plan, fetch: Fetch) -> FetchedTensor:
    name = fetch if isinstance(fetch, str) else address_of(plan.model, fetch)
    source = tensor_named(plan.model.graph, name)
    if source is not None:
        return FetchedTensor(name, plan.main, plan.main.slots[source.layer, source.output], None)
    address = Address.parse(name)
    if address.names_a_graph:
        raise AddressError(
            f"{elided(str(address), 200)} names a graph, not a value: add the name of a node"
        )
    program = plan.program_by_address.get(
        "/".join(segment.label for segment in address.segments[:-1])
    )
    if program is None:
        layer_named(plan.model.graph, name)
        find(plan, address)
        raise AddressError(f"there is no {str(address)!r}")
    return FetchedTensor(name, program, slot_at(program, address), address)


def _loops(plan: Plan, address: Address) -> tuple[int | None, ...]:
    """Return the requested iteration at each loop of an address."""
    iterations: list[int | None] = []
    static = ROOT
    for owner, body in zip(address.segments[1::2], address.segments[2::2], strict=False):
        static = f"{static}/{owner.label}/{body.label}"
        if plan.program_by_address[static].loop is not None:
            iterations.append(None if owner.iteration == ANY_ITERATION else owner.iteration)
    return tuple(iterations)


def address_of(model: Model, tensor: TensorLike) -> str:
    """Return the address of a tensor of ``loopscope.builder`` in the outermost graph or a body;
    ``AddressError`` if the model does not contain it.
    """
    frame, source = tensor.frame, tensor.source
    node: Node = frame.nodes[source.layer]
    for place in graphs(model):
        candidate = place.graph.by_id.get(source.layer)
        is_match = candidate is node or (
            frame.parent is None
            and place.owner is None
            and candidate is not None
            and _is_renamed(candidate, node)
        )
        if is_match:
            output = f":{source.output}" if source.output else ""
            return f"{place.address}/{place.labels[source.layer]}{output}"
    model_name = shorten(repr(model.name), 60)
    raise AddressError(
        f"{shorten(repr(tensor), 60)} is not a tensor of the model {model_name}: "
        "it was built elsewhere, or after the model"
    )


def _is_renamed(candidate: Node, node: Node) -> bool:
    """Return True if ``candidate`` is ``node`` with tensor names added after building (all other
    fields are the same objects).
    """
    return (
        candidate.name == node.name
        and candidate.attributes is node.attributes
        and candidate.inputs is node.inputs
    )


# -- given values


def _fed_tensor(model: Model, key: object) -> OutputRef | None:
    """Return the tensor of the outermost graph that a key of the inputs names; None if the key
    names none.
    """
    try:
        name = (
            key
            if isinstance(key, str)
            else address_of(model, key)
            if isinstance(key, TensorLike)
            else None
        )
        if name is None:
            return None
        source = tensor_named(model.graph, name)
    except AddressError as error:
        if isinstance(key, str) and "there is no tensor" in str(error):
            return None
        raise InputError(str(error)) from None
    if source is None:
        raise InputError(
            f"{shorten(repr(name), 80)} lies in a body: loopscope.Debugger(model, inputs, "
            "changes={address: value}) sets it in one iteration"
        )
    return source


def _convert_feed(plan: Plan, key: object, source: OutputRef, value: Any) -> Any:
    """Return the value as an array of the tensor's element type and shape, as far as they are
    known.
    """
    inferred = plan.propagated.output(ROOT, source.layer, source.output)
    port = plan.model.graph.tensor(source)
    shape = inferred.shape if inferred.shape.dimensions is not None else port.shape
    return convert_to(
        value,
        inferred.element_type or port.element_type,
        shape,
        f"the tensor {shorten(repr(key), 60)}",
    )


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
