"""The table of a loop: a row per iteration with carried values, condition and branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os.path import commonprefix
from weakref import WeakKeyDictionary

import loopscope
from loopscope.errors import EngineError, NotKept
from loopscope.explain import Margin, margin_at
from loopscope.ir import IF, Address, decode, is_recorded, labels, significant
from loopscope.view import NOT_KEPT_TEXT, short_name, value_preview
from loopscope_app.describe.node_index import IndexedNode

PAGE = 100
"""Number of rows of a page."""
MOST_KEPT = 2000
"""Number of cached rows of a run."""
MOST_DECISIONS = 8
"""Number of decisions per iteration whose margins are computed."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: a tensor of the body, or the branch of an If, by its address relative to the
    body.
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
    """The row of an iteration, as text."""

    iteration: int
    """Iteration number, from 0."""
    place: str
    """Concrete address of the body's execution."""
    carried: tuple[str, ...]
    condition: str
    branches: tuple[str, ...]
    margin: str
    """Margin of the closest comparison of floats; empty if the iteration compares none."""
    complete: bool
    """True if all cells are computed."""


_exact_decisions: WeakKeyDictionary[loopscope.Debugger, set[str]] = WeakKeyDictionary()
"""Static addresses of conditions and Ifs that do not compare floats."""
_complete_rows: WeakKeyDictionary[loopscope.Debugger, dict[str, IterationRow]] = WeakKeyDictionary()
"""Complete rows by place; computed values never change."""


def loop_columns(loop: IndexedNode) -> LoopTableColumns:
    """Return the columns of a Loop or TensorIterator; in a trace, what the program recorded."""
    body = loop.node.bodies[0]
    label = labels(body.graph)
    recorded = [label[node.id] for node in body.graph.nodes if is_recorded(node)]
    targets = recorded or [
        label[edge.to_layer] for edge in body.back_edges if edge.to_layer in label
    ]
    ifs = [label[node.id] for node in body.graph.nodes if node.type == IF]
    scope = _shared_scope([decode(text) for text in (*targets, *ifs)], loop.node.name)
    carried = tuple(_column(text, scope) for text in targets)
    condition = next(
        (entry.internal for entry in body.outputs if entry.purpose == "execution_condition"), None
    )
    branches = tuple(_column(text, scope) for text in ifs)
    condition_column = (
        TableColumn("continues", label[condition])
        if condition is not None and condition in label
        else None
    )
    return LoopTableColumns(carried, condition_column, branches)


def _column(label: str, scope: str) -> TableColumn:
    return TableColumn(short_name(decode(label).removeprefix(scope)), label)


def _shared_scope(names: Sequence[str], loop: str) -> str:
    """Return the scope that all names are in, with its last slash. A single name is compared with
    the name of its loop.

    >>> _shared_scope(["layers.3/attention/state", "layers.3/attention/read"], "layers.3/loop")
    'layers.3/attention/'
    >>> _shared_scope(["layers.3/state"], "layers.3/loop"), _shared_scope(["a/b", "c"], "loop")
    ('layers.3/', '')
    """
    compared = names if len(names) > 1 else [*names, loop]
    scopes = [name[: name.rfind("/") + 1] for name in compared]
    shared = commonprefix(scopes)  # noqa: RUF071 - it is cut at its last slash
    return shared[: shared.rfind("/") + 1]


def rows(
    debugger: loopscope.Debugger, loop: str, columns: LoopTableColumns, iterations: Sequence[int]
) -> list[IterationRow]:
    """Return the rows of some iterations of one execution of a loop, named by its concrete
    address.
    """
    cached = _complete_rows.setdefault(debugger, {})
    result: list[IterationRow] = []
    for iteration in iterations:
        body = f"{loop}[{iteration}]/body"
        row = cached.get(body) or _row(debugger, body, columns, iteration)
        if row.complete:
            cached[body] = row
        result.append(row)
    while len(cached) > MOST_KEPT:
        del cached[next(iter(cached))]
    return result


def _row(
    debugger: loopscope.Debugger, body: str, columns: LoopTableColumns, iteration: int
) -> IterationRow:
    carried = tuple(preview(debugger, f"{body}/{column.label}") for column in columns.carried)
    condition = preview(debugger, f"{body}/{columns.condition.label}") if columns.condition else ""
    branches = tuple(
        branch_taken(debugger, f"{body}/{column.label}") for column in columns.branches
    )
    complete = all(carried) and all(branches) and bool(condition or columns.condition is None)
    continues = {"true": "yes", "false": "no"}.get(condition, condition)
    return IterationRow(
        iteration, body, carried, continues, branches, _margin(debugger, body, columns), complete
    )


def _margin(debugger: loopscope.Debugger, body: str, columns: LoopTableColumns) -> str:
    """Return the margin of the narrowest decision of an iteration.

    A place that did not compare finite floats the first time is skipped later, so that loops of
    integers cost nothing.
    """
    skipped = _exact_decisions.setdefault(debugger, set())
    candidates = [
        column.label
        for column in (*columns.branches, *([columns.condition] if columns.condition else []))
    ]
    margins: list[Margin] = []
    for label in candidates:
        static = Address.parse(f"{body}/{label}").static
        if static in skipped or len(margins) == MOST_DECISIONS:
            continue
        try:
            margin = margin_at(debugger, f"{body}/{label}")
        except EngineError:
            continue  # not decided yet
        if margin is None:
            skipped.add(static)
        else:
            margins.append(margin)
    if not margins:
        return ""
    return margin_words(min(margins, key=lambda margin: (not margin.otherwise, margin.distance)))


def margin_words(margin: Margin) -> str:
    """Return a margin as the text of a cell.

    >>> margin_words(Margin(0.0004, ("bf16",))), margin_words(Margin(0.25, ()))
    ('0.0004, otherwise in bf16', '0.25')
    """
    otherwise = f", otherwise in {' and '.join(margin.otherwise)}" if margin.otherwise else ""
    return f"{significant(margin.distance, 2)}{otherwise}"


def preview(debugger: loopscope.Debugger, address: str) -> str:
    """Return the value at a concrete address as a short text, or an empty text if there is none."""
    try:
        return value_preview(debugger.value(address))
    except NotKept:
        return NOT_KEPT_TEXT
    except EngineError:
        return ""


def branch_taken(debugger: loopscope.Debugger, address: str) -> str:
    """Return the branch that an If took; empty before it began."""
    try:
        record = debugger.record(address)
    except EngineError:
        return ""
    return record.branch or "" if record is not None else ""
