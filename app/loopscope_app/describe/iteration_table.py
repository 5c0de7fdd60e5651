"""The iterations of a loop: a table with a row per iteration, of carried values, condition and
branches; and strips of HTML with the branch of each and the course of carried numbers.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from os.path import commonprefix
from weakref import WeakKeyDictionary

import loopscope
from loopscope.errors import EngineError, NotKept, neutral
from loopscope.explain import Margin, margin_at
from loopscope.ir import IF, Address, decode, is_recorded, iteration_words, labels, significant
from loopscope.view import COLOURS, NOT_KEPT_TEXT, short_name, value_preview
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


MOST_STRIPS = 6
_WIDTH, _HEIGHT = 600, 22
_LINE = COLOURS["curve"].light


def tape(rows: Sequence[IterationRow], columns: LoopTableColumns, current: int | None) -> str:
    """Return the strips, or an empty text for a loop with fewer than two iterations."""
    if len(rows) < 2:
        return ""
    current_position = next(
        (position for position, row in enumerate(rows) if row.iteration == current), None
    )
    strips: list[str] = []
    for index, column in enumerate(columns.branches):
        branches = {row.iteration: row.branches[index] for row in rows}
        strips.append(_strip(column.title, _branch_blocks(branches, current)))
    for index, column in enumerate(columns.carried):
        numbers = [_scalar_number(row.carried[index]) for row in rows]
        if sum(number is not None for number in numbers) > 1:
            strips.append(
                _strip(
                    column.title,
                    curve(numbers, current_position),
                    _first_and_last(row.carried[index] for row in rows),
                )
            )
    return f'<div class="tapes">{"".join(strips[:MOST_STRIPS])}</div>' if strips else ""


def _strip(title: str, picture: str, ends: str = "") -> str:
    name, last = escape(neutral(title, 28)), escape(neutral(ends, 40))
    return (
        f'<span class="name">{name}</span><span class="tape">{picture}</span>'
        f'<span class="ends">{last}</span>'
    )


def _first_and_last(texts: Iterable[str]) -> str:
    """Return the first and the last value.

    >>> _first_and_last(["1", "", "5"])
    '1 → 5'
    """
    known = [text for text in texts if text]
    return f"{known[0]} → {known[-1]}" if known else ""


def _branch_blocks(branches: Mapping[int, str], current: int | None) -> str:
    """Return the branches of all iterations.

    >>> _branch_blocks({1199: "then"}, 1199)
    '<i class="then here" title="iteration 1,199: then"></i>'
    """
    blocks: list[str] = []
    for iteration, branch in branches.items():
        mark = " here" if iteration == current else ""
        title = f"{iteration_words(iteration)}: {branch or 'not yet'}"
        blocks.append(f'<i class="{branch}{mark}" title="{title}"></i>')
    return "".join(blocks)


def _scalar_number(text: str) -> float | None:
    """Return the preview of a scalar as a number; None for any other text.

    >>> _scalar_number("3.5"), _scalar_number("[2] 1, 2"), _scalar_number("NaN")
    (3.5, None, None)
    """
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def curve(numbers: Sequence[float | None], current: int | None, height: int = _HEIGHT) -> str:
    """Return a line through the numbers, each in the middle of its iteration; ``current`` is
    marked.
    """
    known = [number for number in numbers if number is not None]
    low, high = min(known), max(known)
    share, range_height = _WIDTH / len(numbers), height - 6
    points = []
    for position, number in enumerate(numbers):
        if number is not None:
            level = 0.5 if high == low else (number - low) / (high - low)
            points.append(f"{(position + 0.5) * share:.1f},{height - 3 - level * range_height:.1f}")
    mark = (
        f'<rect x="{current * share:.1f}" y="0" width="{share:.1f}" height="{height}" '
        f'fill="{_LINE}" opacity="0.25"/>'
        if current is not None
        else ""
    )
    line = (
        f'<polyline points="{" ".join(points)}" fill="none" stroke="{_LINE}" '
        'stroke-width="1.6" vector-effect="non-scaling-stroke"/>'
    )
    size = f'viewBox="0 0 {_WIDTH} {height}" preserveAspectRatio="none"'
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{mark}{line}</svg>'
    # An image, because Streamlit removes drawings from markup.
    data = base64.b64encode(drawing.encode()).decode()
    return f'<img alt="" src="data:image/svg+xml;base64,{data}">'
