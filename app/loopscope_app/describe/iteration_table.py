"""A loop's run as a table: one row per iteration with the carried values, the condition, the
branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import loopscope
from loopscope.errors import EngineError, NotKept
from loopscope.explain import Margin, margin_at
from loopscope.ir import IF, Address, decode, labels
from loopscope.view import NOT_KEPT_TEXT, short_name, value_preview
from loopscope_app.describe.node_index import IndexedNode

PAGE = 100
"""Rows of one page."""
MOST_KEPT = 2000
"""Rows of a run that are remembered."""
MOST_DECISIONS = 8
"""Of one iteration, whose margins are looked at."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """What one column shows: a tensor of the body, or the branch of an If, by its address below
    the body.
    """

    title: str
    label: str


@dataclass(frozen=True, slots=True)
class LoopTableColumns:
    """The columns of a loop's table."""

    carried: tuple[TableColumn, ...]
    condition: TableColumn | None
    branches: tuple[TableColumn, ...]


@dataclass(frozen=True, slots=True)
class IterationRow:
    """One iteration in words."""

    iteration: int
    """0-based."""
    place: str
    """Concrete address of the body's execution, to go to."""
    carried: tuple[str, ...]
    condition: str
    branches: tuple[str, ...]
    margin: str
    """How narrowly floats decided in it; empty where they did not."""
    complete: bool
    """Nothing in it is still to be computed."""


_not_of_floats: WeakKeyDictionary[loopscope.Debugger, set[str]] = WeakKeyDictionary()
"""Static addresses of conditions and Ifs that compare no floats."""
_finished: WeakKeyDictionary[loopscope.Debugger, dict[str, IterationRow]] = WeakKeyDictionary()
"""Rows that are complete, by place: what has been computed never changes."""


def loop_columns(loop: IndexedNode) -> LoopTableColumns:
    """What is worth a column in the table of a Loop or TensorIterator."""
    body = loop.node.bodies[0]
    label = labels(body.graph)
    fed = [label[edge.to_layer] for edge in body.back_edges if edge.to_layer in label]
    carried = tuple(TableColumn(short_name(decode(text)), text) for text in fed)
    condition = next(
        (entry.internal for entry in body.outputs if entry.purpose == "execution_condition"), None
    )
    ifs = (label[node.id] for node in body.graph.nodes if node.type == IF)
    branches = tuple(TableColumn(short_name(decode(text)), text) for text in ifs)
    goes_on = (
        TableColumn("goes on", label[condition])
        if condition is not None and condition in label
        else None
    )
    return LoopTableColumns(carried, goes_on, branches)


def rows(
    debugger: loopscope.Debugger, loop: str, columns: LoopTableColumns, iterations: Sequence[int]
) -> list[IterationRow]:
    """The rows of some iterations of one execution of a loop (its concrete address, such as
    ``main/outer[1]/body/inner``).
    """
    kept = _finished.setdefault(debugger, {})
    found: list[IterationRow] = []
    for iteration in iterations:
        body = f"{loop}[{iteration}]/body"
        row = kept.get(body) or _row(debugger, body, columns, iteration)
        if row.complete:
            kept[body] = row
        found.append(row)
    while len(kept) > MOST_KEPT:
        del kept[next(iter(kept))]
    return found


def _row(
    debugger: loopscope.Debugger, body: str, columns: LoopTableColumns, iteration: int
) -> IterationRow:
    carried = tuple(preview(debugger, f"{body}/{column.label}") for column in columns.carried)
    condition = preview(debugger, f"{body}/{columns.condition.label}") if columns.condition else ""
    branches = tuple(
        branch_taken(debugger, f"{body}/{column.label}") for column in columns.branches
    )
    complete = all(carried) and all(branches) and bool(condition or columns.condition is None)
    goes_on = {"true": "yes", "false": "no"}.get(condition, condition)
    return IterationRow(
        iteration, body, carried, goes_on, branches, _margin(debugger, body, columns), complete
    )


def _margin(debugger: loopscope.Debugger, body: str, columns: LoopTableColumns) -> str:
    """Of the narrowest decision of an iteration.

    What compared no finite floats the first time is not asked again, so that loops of whole numbers
    cost nothing.
    """
    skipped = _not_of_floats.setdefault(debugger, set())
    asked = [
        column.label
        for column in (*columns.branches, *([columns.condition] if columns.condition else []))
    ]
    found: list[Margin] = []
    for label in asked:
        static = Address.parse(f"{body}/{label}").static
        if static in skipped or len(found) == MOST_DECISIONS:
            continue
        try:
            margin = margin_at(debugger, f"{body}/{label}")
        except EngineError:
            continue  # it has not been decided yet
        if margin is None:
            skipped.add(static)
        else:
            found.append(margin)
    return (
        margin_words(min(found, key=lambda one: (not one.otherwise, one.distance))) if found else ""
    )


def margin_words(margin: Margin) -> str:
    """In a cell of a table.

    >>> margin_words(Margin(0.0004, ("bf16",))), margin_words(Margin(0.25, ()))
    ('0.0004, otherwise in bf16', '0.25')
    """
    otherwise = f", otherwise in {' and '.join(margin.otherwise)}" if margin.otherwise else ""
    return f"{margin.distance:.2g}{otherwise}"


def preview(debugger: loopscope.Debugger, address: str) -> str:
    """The value at a concrete address in a few characters; empty when there is none."""
    try:
        return value_preview(debugger.value(address))
    except NotKept:
        return NOT_KEPT_TEXT
    except EngineError:
        return ""


def branch_taken(debugger: loopscope.Debugger, address: str) -> str:
    """Which branch an If has taken; empty while it has not begun."""
    try:
        record = debugger.record(address)
    except EngineError:
        return ""
    return record.branch or "" if record is not None else ""
