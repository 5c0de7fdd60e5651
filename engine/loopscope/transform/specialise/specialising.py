"""Specialisation of a model to fixed inputs, shapes, branches and iteration counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.checks.check import check
from loopscope.checks.diagnostic import InvalidModel
from loopscope.checks.order import order
from loopscope.checks.propagate import Propagated, propagate
from loopscope.errors import AddressError, shorten
from loopscope.ir.address import ROOT, labels, nodes
from loopscope.ir.model import IF, LayerId, Model, ModelGraph, Node, expect_model
from loopscope.ir.replace import replace
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.dialect import catalogue_for
from loopscope.transform.specialise.editable_graph import (
    EditableGraph,
    ModelNames,
    with_body_graphs,
)
from loopscope.transform.specialise.known_facts import (
    NO_PATHS,
    TakenPaths,
    fix_count,
    inline_branch,
    is_loop_of_one_body,
    known_condition,
    known_count,
    with_shapes,
    with_values,
)
from loopscope.transform.specialise.simplification import fold_constants, fold_known, remove_dead
from loopscope.transform.specialise.unrolling import CannotUnroll, unroll
from loopscope.write.onnx.onnx_file import with_inferred_types

VALIDITY = "loopscope.valid_while"
"""Key of the metadata with the conditions of a specialised model."""
DEFAULT_UNROLL = 64
"""Iteration count up to which loops are unrolled if no limit is set."""
_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Specialised:
    """A specialised model, what it depends on, and what was changed."""

    model: Model
    conditions: tuple[str, ...]
    """Conditions under which the model is equal to the original."""
    changes: tuple[str, ...]
    """Sentences about the branches and loops that were removed."""
    remaining: tuple[str, ...]
    """Reasons why a requested change was not made."""
    assumed: TakenPaths = NO_PATHS
    """Branches and counts that were taken from runs, by the addresses of the original."""

    @property
    def validity(self) -> str:
        """The conditions as one sentence; empty if the model is equal for all inputs."""
        return f"valid while {'; '.join(self.conditions)}" if self.conditions else ""


def specialise(
    model: Model,
    values: Mapping[str, Any] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    *,
    taken: TakenPaths | None = None,
    unroll: int | bool = False,
    catalogue: Catalogue = CATALOGUE,
) -> Specialised:
    """Return the model for some of its inputs, without the control flow that this decides.

    ``values`` makes inputs constants, and ``shapes`` sets their lengths. Constant values are
    computed, an If with a constant condition becomes its branch, and dead parts are removed.
    ``taken`` are branches and iteration counts of runs. They decide where constants do not; the
    model is then valid only for runs that take the same paths. ``unroll`` is the largest iteration
    count of loops that become copies of their body; True means 64. Loops that never iterate are
    removed without it.

    The model stores the conditions of its validity in its metadata.

    ``InputError`` for an unknown input and a value that does not fit, ``AddressError`` for a path
    that the model does not have, ``InvalidModel`` for a model that cannot run.
    """
    expect_model(model, "loopscope.specialise")
    known_operations = catalogue_for(model.dialect, catalogue)
    fixed = with_shapes(with_values(model, values or {}), shapes or {})
    report = check(fixed, known_operations)
    if not report.ok:
        raise InvalidModel(report)
    limit = DEFAULT_UNROLL if unroll is True else int(unroll)
    paths = taken or NO_PATHS
    _expect_regions(model, paths)
    work = _Specialising(fixed, known_operations, paths, limit)
    result = work.run()
    conditions = (
        *(f"{name} = {_text(value)}" for name, value in (values or {}).items()),
        *(f"{name} has the shape {list(lengths)}" for name, lengths in (shapes or {}).items()),
        *work.conditions,
    )
    specialised = Specialised(
        result,
        conditions,
        tuple(work.changes),
        tuple(work.remaining.values()),
        TakenPaths(paths.runs, work.branches, work.counts),
    )
    return replace(specialised, model=_with_validity(result, specialised))


def _expect_regions(model: Model, paths: TakenPaths) -> None:
    known = {address for address, node in nodes(model) if node.bodies}
    for address in (*paths.branches, *paths.counts):
        if address not in known:
            raise AddressError(
                f"{shorten(address)!r} is not a loop or If of the model: "
                "expected runs of this model"
            )


def _text(value: Any) -> str:
    array = np.asarray(value)
    return str(array[()]) if array.ndim == 0 else shorten(str(array.tolist()), 60)


def _with_validity(model: Model, specialised: Specialised) -> Model:
    """Return the model with its conditions in the metadata."""
    if not specialised.conditions:
        return model
    if model.dialect == "onnx":
        return replace(model, meta_data={**model.meta_data, VALIDITY: specialised.validity})
    return replace(model, rt_info={**model.rt_info, VALIDITY: specialised.validity})


@dataclass(slots=True)
class _Specialising:
    """The rounds of one specialisation."""

    model: Model
    catalogue: Catalogue
    taken: TakenPaths
    limit: int
    """Iteration count up to which loops are unrolled; 0 for none."""
    conditions: list[str] = field(default_factory=list[str])
    changes: list[str] = field(default_factory=list[str])
    branches: dict[str, bool] = field(default_factory=dict[str, bool])
    """Branches that were taken from runs, by the address of the If."""
    counts: dict[str, int] = field(default_factory=dict[str, int])
    """Iteration counts that were taken from runs, by the address of the loop."""
    remaining: dict[str, str] = field(default_factory=dict[str, str])
    """Reasons why a loop or If was not changed, by its address."""
    names: ModelNames = field(init=False)
    known: Propagated = field(init=False)

    def run(self) -> Model:
        """Repeat until nothing changes: what one round computes decides more in the next.

        The result does not have the path of a file: other runtimes must not read the original.
        """
        for _ in range(_ROUNDS):
            self.names = ModelNames(self.model)
            self.known = propagate(self.model, self.catalogue, computes_declared=True)
            graph = self._graph(ROOT, self.model.graph)
            # Addresses of the runs are those of the original model.
            self.taken = NO_PATHS
            if graph is self.model.graph:
                break
            self.model = replace(self.model, graph=graph)
            if self.model.dialect == "onnx":
                self.model = with_inferred_types(self.model)
        return replace(self.model, file="")

    def _graph(self, address: str, graph: ModelGraph) -> ModelGraph:
        edited = EditableGraph(graph, self.names)
        label_of = labels(graph)
        regions = [node.id for node in graph.nodes if node.bodies and self._can_change(node)]
        for layer in regions:
            node = graph.by_id[layer]
            place = f"{address}/{label_of[layer]}"
            edited.put(
                with_body_graphs(
                    node,
                    {
                        body.name: self._graph(f"{place}/{body.name}", body.graph)
                        for body in node.bodies
                    },
                )
            )
        fold_known(edited, address, self.known)
        fold_constants(edited, list(order(graph).layers), self.catalogue)
        for layer in regions:
            place = f"{address}/{label_of[layer]}"
            if graph.by_id[layer].type == IF:
                self._inline_if(edited, address, layer, place)
            elif is_loop_of_one_body(graph.by_id[layer]):
                self._unroll_loop(edited, address, layer, place)
        remove_dead(edited, self._can_change)
        return edited.build()

    def _inline_if(self, graph: EditableGraph, address: str, layer: LayerId, place: str) -> None:
        condition = known_condition(graph, address, layer, self.known)
        is_proved = condition is not None
        if condition is None:
            condition = self.taken.branches.get(place)
        if condition is None:
            return
        node = graph.nodes[layer]
        name = "then" if condition else "else"
        branch = next((body for body in node.bodies if body.name == name), None)
        other = next((body for body in node.bodies if body.name != name), None)
        if branch is None:
            return
        text = self._condition_name(graph, layer)
        if not inline_branch(graph, layer, branch):
            self.remaining[place] = f"{place} remains: a Parameter of its branch is not fed"
            return
        if not is_proved:
            self.branches[place] = condition
            self._assume(f"{text} was {str(condition).lower()} in {self._runs()}", place)
        if other is not None:
            # Sentences about changes inside the removed branch are removed with it.
            removed = f"{place}/{other.name}/"
            self.changes = [text for text in self.changes if not text.startswith(removed)]
        size = 0 if other is None else _size(other.graph)
        nodes_text = f"{size:,} node{'' if size == 1 else 's'}"
        self.changes.append(
            f"{place} became its {name} branch; {nodes_text} of the other branch removed"
        )

    def _assume(self, text: str, place: str) -> None:
        """Add a condition once, with its place unless the If is in the outermost graph."""
        condition = text if place.count("/") == 1 else f"{text} ({place})"
        if condition not in self.conditions:
            self.conditions.append(condition)

    def _condition_name(self, graph: EditableGraph, layer: LayerId) -> str:
        """Return the name of the tensor that decides an If."""
        source = graph.source(layer, 0)
        if source is None:
            return "its condition"
        node = graph.nodes[source.layer]
        names = node.outputs[source.output].names
        return shorten(names[0] if names else node.name, 60)

    def _runs(self) -> str:
        return "the run" if self.taken.runs == 1 else f"all {self.taken.runs:,} runs"

    def _unroll_loop(self, graph: EditableGraph, address: str, layer: LayerId, place: str) -> None:
        count = known_count(graph, address, layer, f"{place}/body", self.known)
        observed = self.taken.counts.get(place) if count is None else None
        if observed is not None and fix_count(graph, layer, observed):
            count = self.counts[place] = observed
            self.conditions.append(f"{place} ran {observed:,} iterations in {self._runs()}")
            self.changes.append(f"{place} runs {observed:,} iterations without a condition")
        if count is None or count > self.limit or not (self.limit or count == 0):
            return
        try:
            unroll(graph, address, layer, count, self.known, self.catalogue, f"{place}/body")
        except CannotUnroll as reason:
            self.remaining[place] = f"{place} remains: {reason}"
            return
        self.changes.append(
            f"{place} was unrolled into {count:,} iteration{'' if count == 1 else 's'}"
        )

    def _can_change(self, node: Node) -> bool:
        """Return True if a changed body of the node can be written again."""
        if node.is_foreign:
            return False
        source = self.model.source
        if source is None or node.source not in source.calls:
            return not node.is_function
        number = node.bodies[0].graph.source if node.bodies else 0
        return node.is_function and number > 0 and (source.places[number - 1].function is not None)


def _size(graph: ModelGraph) -> int:
    """Return the number of nodes of a graph and of all graphs in it."""
    waiting, count = [graph], 0
    while waiting:
        nodes_here = waiting.pop().nodes
        count += sum(node.type not in ("Parameter", "Result") for node in nodes_here)
        waiting += [body.graph for node in nodes_here for body in node.bodies]
    return count
