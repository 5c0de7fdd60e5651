"""Texts of a page beside the picture: a verdict per loop and branch, and a table of iterations.
Every name is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import islice

import loopscope
from loopscope.errors import EngineError, neutral, shorten
from loopscope.explain import Fact
from loopscope.ir import IF, readable
from loopscope.timeline import ControlFlowRecord
from loopscope.view import without_iterations
from loopscope_app.describe.iteration_table import (
    IterationRow,
    LoopTableColumns,
    loop_columns,
    rows,
)
from loopscope_app.describe.node_index import places
from loopscope_app.describe.wording import record_sentence, times

MOST_VERDICTS, MOST_TABLES, MOST_ROWS = 40, 8, 200
MOST_FACTS, MOST_DEPTH = 20, 12
_LONGEST = 400


def text(words: str, limit: int = _LONGEST) -> str:
    """Return words as HTML, escaped and without characters that reverse or hide text."""
    return escape(neutral(shorten(words, limit), limit))


def verdicts(debugger: loopscope.Debugger, *, with_values: bool) -> str:
    """Return a sentence for each of the first loops and branches that ran."""
    records = [
        _item(debugger, record, with_values)
        for record in islice(debugger.control_flow, MOST_VERDICTS)
    ]
    if not records:
        return "<p>No loop and no branch has run.</p>"
    more = len(debugger.control_flow) - len(records)
    rest = f"<p>{more:,} more loops and branches ran.</p>" if more > 0 else ""
    return f"<ul>{''.join(records)}</ul>{rest}"


def _item(debugger: loopscope.Debugger, record: ControlFlowRecord, with_values: bool) -> str:
    sentence, proof = _sentence(debugger, record, with_values)
    return (
        f'<li><span class="address">{_place(record.address)}</span> '
        f"{_marked(sentence)}{_proof(proof)}</li>"
    )


def _proof(facts: Sequence[Fact]) -> str:
    """Return the facts of a proof as nested lists; empty without facts."""
    if not facts:
        return ""
    lines = "".join(
        f"<div>{'&emsp;' * min(fact.depth, MOST_DEPTH)}{_marked(fact.text)}</div>"
        for fact in facts[:MOST_FACTS]
    )
    more = f"<div>and {len(facts) - MOST_FACTS:,} more</div>" if len(facts) > MOST_FACTS else ""
    return f'<details class="proof"><summary>the proof</summary>{lines}{more}</details>'


def _place(address: str) -> str:
    return text(readable(address))


def _marked(sentence: str) -> str:
    """Return a sentence as HTML, with the names between backticks as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", text(sentence, 2000))


def _sentence(
    debugger: loopscope.Debugger, record: ControlFlowRecord, with_values: bool
) -> tuple[str, Sequence[Fact]]:
    if with_values:
        try:
            verdict = loopscope.verdict(debugger, record.address)
            return verdict.sentence, verdict.proof
        except EngineError:
            pass  # a function has no verdict, and the record says all that there is
    sentence = record_sentence(record)
    return f"{sentence[:1].upper()}{sentence[1:]}.", ()


def tables(debugger: loopscope.Debugger, graphs: Mapping[str, int], *, with_values: bool) -> str:
    """Return a table for each of the first executions of loops. ``graphs`` maps each execution of a
    graph to its first moment.
    """
    return "".join(
        unfolding(record, table(debugger, record, graphs, with_values=with_values))
        for record in loops(debugger)
    )


def loops(debugger: loopscope.Debugger) -> list[ControlFlowRecord]:
    """Return the executions of loops that are shown."""
    known = places(debugger.model)
    records = (
        record
        for record in debugger.control_flow
        if record.iterations and known[without_iterations(record.address)].node.type != IF
    )
    return list(islice(records, MOST_TABLES))


def unfolding(record: ControlFlowRecord, content: str) -> str:
    """Return the content of one execution of a loop, below its name."""
    assert record.iterations is not None
    return (
        f'<details open class="loop"><summary>{_place(record.address)}: '
        f"{times(record.iterations)}</summary>{content}</details>"
    )


def columns_of(
    debugger: loopscope.Debugger, record: ControlFlowRecord, *, with_values: bool
) -> LoopTableColumns:
    """Return the columns of its table; without values, the branches only."""
    columns = loop_columns(places(debugger.model)[without_iterations(record.address)])
    return columns if with_values else LoopTableColumns((), None, columns.branches)


def rows_of(
    debugger: loopscope.Debugger, record: ControlFlowRecord, columns: LoopTableColumns
) -> list[IterationRow]:
    """Return its first iterations."""
    return rows(debugger, record.address, columns, range(min(record.iterations or 0, MOST_ROWS)))


def table(
    debugger: loopscope.Debugger,
    record: ControlFlowRecord,
    graphs: Mapping[str, int],
    *,
    with_values: bool,
) -> str:
    """Return a row for each of the first iterations."""
    columns = columns_of(debugger, record, with_values=with_values)
    condition = (columns.condition,) if columns.condition else ()
    heads = "".join(
        f"<th>{text(column.title, 60)}</th>"
        for column in (*columns.carried, *condition, *columns.branches)
    )
    shown = rows_of(debugger, record, columns)
    body = "".join(_row(row, columns, graphs) for row in shown)
    last = max((graphs[row.place] for row in shown if row.place in graphs), default=0)
    end = max(
        (moment for graph, moment in graphs.items() if graph.startswith(f"{record.address}[")),
        default=last,
    )
    total = record.iterations or 0
    more = (
        f"<caption>The first {MOST_ROWS} of {total:,} iterations</caption>"
        if total > MOST_ROWS
        else ""
    )
    head = f"{more}<thead><tr><th>iteration</th>{heads}</tr></thead><tbody>{body}</tbody>"
    # Whoever has no pointer scrolls it by keys.
    region = f'tabindex="0" role="region" aria-label="Iterations of {_place(record.address)}"'
    return f'<div class="wide" {region}><table data-last="{end}">{head}</table></div>'


def _row(row: IterationRow, columns: LoopTableColumns, graphs: Mapping[str, int]) -> str:
    moment = f' data-moment="{graphs[row.place]}"' if row.place in graphs else ""
    return f"<tr{moment}><td>{row.iteration}</td>{''.join(_cells(row, columns))}</tr>"


def _cells(row: IterationRow, columns: LoopTableColumns) -> Iterator[str]:
    yield from (f"<td>{text(cell, 120)}</td>" for cell in row.carried)
    if columns.condition:
        yield f"<td>{text(row.condition, 60)}</td>"
    yield from (f"<td>{text(cell, 60)}</td>" for cell in row.branches)
