"""What a caller asks of one run: the tensors that are fetched, those that are given instead of
computed, and the plan for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from loopscope.debug.breakpoints import Breakpoint, find
from loopscope.debug.inputs import Inputs, bind, fitted, named_inputs
from loopscope.debug.lookup import slot_at
from loopscope.errors import AddressError, InputError, elided, shorten
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Plan, Program
from loopscope.executor.plan.pruning import everything, needed, part_of
from loopscope.ir.address import ANY_ITERATION, ROOT, Address
from loopscope.ir.main_graph_names import layer_named, tensor_named
from loopscope.ir.model import Model, Node, OutputRef
from loopscope.ir.walk import graphs


class BuiltIn(Protocol):
    """Where a tensor was built: the nodes of a graph or body, and what that is in."""

    @property
    def nodes(self) -> Sequence[Node]: ...

    @property
    def parent(self) -> object: ...


@runtime_checkable
class TensorLike(Protocol):
    """A tensor of ``loopscope.builder``."""

    @property
    def source(self) -> OutputRef: ...

    @property
    def frame(self) -> Any: ...


Fetch = str | TensorLike
_MOST_PARTS = 8
"""Of one plan; each holds the code that was generated for it."""


@dataclass(frozen=True, slots=True, eq=False)
class FetchedTensor:
    """A tensor that is fetched."""

    name: str
    """As it was asked for; of a tensor of ``loopscope.builder`` its address."""
    program: Program
    slot: Slot
    address: Address | None
    """None for a tensor of the outermost graph."""

    def after(self, plan: Plan) -> Breakpoint | None:
        """The moment when it has been computed; None when that is the end of the run."""
        iterations: tuple[int | None, ...] = ()
        program = plan.program_by_address[self.program.address]
        if self.address is not None:
            iterations = (
                find(plan, self.address)[2]
                if program.producer.get(self.slot) is not None
                else _loops(plan, self.address)
            )
        number = program.producer.get(self.slot)
        sure = all(one is not None for one in iterations)
        return (
            Breakpoint(
                0, "", "address", None, program, 0 if number is None else number + 1, iterations
            )
            if sure
            else None
        )


@dataclass(frozen=True, slots=True, eq=False)
class FetchPlan:
    """A plan and the values that it begins with."""

    plan: Plan
    places: tuple[FetchedTensor, ...] | None
    """What is fetched; None: the model's outputs."""
    values: Mapping[Slot, Any]

    @property
    def ends_early(self) -> bool:
        """Whether all that is fetched may be there before the end of the run."""
        return any(place.address is not None for place in self.places or ())


def resolve_fetches(
    plan: Plan, inputs: Inputs, fetches: object = None, *, whole: bool = False
) -> FetchPlan:
    """``AddressError`` for a fetch that names nothing or several tensors, ``InputError`` for inputs
    that do not fit.

    ``whole``: what no output needs runs too.
    """
    model = plan.model
    places = None if fetches is None else tuple(_place(plan, one) for one in each_fetch(fetches))
    rest, given = named_inputs(model, inputs, lambda key: _given(model, key))
    fed = {
        plan.main.slots[source.layer, source.output]: _fitted(plan, key, source, value)
        for source, (key, value) in given.items()
    }
    part = _part(plan, places, fed, plan.optimise.prune and not whole)
    live = part.live if places is not None or fed else None
    layers = (
        None
        if live is None
        else {
            layer
            for layer, slot in part.main.parameters.items()
            if slot in live and slot not in fed
        }
    )
    arrays = bind(model, rest, needed=layers)
    return FetchPlan(
        part,
        places,
        {**{plan.main.parameters[layer]: array for layer, array in arrays.items()}, **fed},
    )


def _part(
    plan: Plan, places: Sequence[FetchedTensor] | None, fed: Mapping[Slot, Any], prune: bool
) -> Plan:
    """What has to run; made once for what the same plan is asked again and again."""
    key = (
        None
        if places is None
        else tuple((place.program.index, place.slot, place.address is None) for place in places),
        frozenset(fed),
        prune,
    )
    if key in (known := dict(plan.parts)):  # another thread may be making room
        return known[key] or plan
    made = _made_part(plan, places, fed, prune)
    for oldest in list(known)[: max(0, len(known) - _MOST_PARTS + 1)]:
        plan.parts.pop(oldest, None)
    plan.parts[key] = (
        None if made is plan else made
    )  # a plan that held itself would outlive its model
    return made


def _made_part(
    plan: Plan, places: Sequence[FetchedTensor] | None, fed: Mapping[Slot, Any], prune: bool
) -> Plan:
    fetched = [] if places is None else [place.slot for place in places if place.address is None]
    if not prune:
        return part_of(plan, everything(plan), fed, fetched) if fed or places is not None else plan
    wanted = [(plan.main, slot) for slot in plan.main.results.values()]
    if places is not None:
        wanted = [(place.program, place.slot) for place in places]
    return part_of(plan, needed(plan, wanted, fed, assigns=places is None), fed, fetched)


def each_fetch(fetches: object) -> Iterator[Fetch]:
    for one in (
        [fetches]
        if isinstance(fetches, str | TensorLike) or not isinstance(fetches, Iterable)
        else fetches
    ):
        if not isinstance(one, str | TensorLike):
            raise AddressError(
                f"fetches are tensor names, node names, addresses or tensors, not {shorten(repr(one), 60)}"
            )
        yield one


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
    """The iteration that an address asks for at each loop of its way."""
    found: list[int | None] = []
    static = ROOT
    for owner, body in zip(address.segments[1::2], address.segments[2::2], strict=False):
        static = f"{static}/{owner.label}/{body.label}"
        if plan.program_by_address[static].loop is not None:
            found.append(None if owner.iteration == ANY_ITERATION else owner.iteration)
    return tuple(found)


def address_of(model: Model, tensor: TensorLike) -> str:
    """The address of a tensor of ``loopscope.builder``, of the outermost graph or of a body;
    ``AddressError`` when the model has it not.
    """
    frame, source = tensor.frame, tensor.source
    node: Node = frame.nodes[source.layer]
    for place in graphs(model):
        found = place.graph.by_id.get(source.layer)
        of_it = found is node or (
            frame.parent is None
            and place.owner is None
            and found is not None
            and _is_made_of(found, node)
        )
        if of_it:
            return f"{place.address}/{place.labels[source.layer]}{f':{source.output}' if source.output else ''}"
    model_name = shorten(repr(model.name), 60)
    raise AddressError(
        f"{shorten(repr(tensor), 60)} is no tensor of the model {model_name}: it was built elsewhere, or after the model"
    )


def _is_made_of(found: Node, node: Node) -> bool:
    """Whether it is the node with tensor names that it had not while it was built; its other
    parts are the same objects then.
    """
    return (
        found.name == node.name
        and found.attributes is node.attributes
        and found.inputs is node.inputs
    )


# -- what is given
# ------------------------------------------------------------------------------------------------------


def _given(model: Model, key: object) -> OutputRef | None:
    """The tensor of the outermost graph that a key of the inputs means; None when it means none."""
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
            f"{shorten(repr(name), 80)} lies in a body: loopscope.Debugger(model, inputs, changes={{address: value}}) sets it in one iteration"
        )
    return source


def _fitted(plan: Plan, key: object, source: OutputRef, value: Any) -> Any:
    """The value as an array of the tensor's element type and shape, as far as they are known."""
    known = plan.propagated.output(ROOT, source.layer, source.output)
    port = plan.model.graph.tensor(source)
    shape = known.shape if known.shape.dimensions is not None else port.shape
    return fitted(
        value,
        known.element_type or port.element_type,
        shape,
        f"the tensor {shorten(repr(key), 60)}",
    )
