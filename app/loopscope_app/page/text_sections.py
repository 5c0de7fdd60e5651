"""What a page says of a run beside the picture: a verdict for each loop and branch, and a table
of iterations; HTML, every name escaped.
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


def text(words: str, most: int = _LONGEST) -> str:
    """Words as HTML: without what turns text around or hides it, and escaped."""
    return escape(neutral(shorten(words, most), most))


def verdicts(debugger: loopscope.Debugger, *, with_values: bool) -> str:
    """A sentence for each loop and branch that ran, the first ones of many."""
    found = [
        _item(debugger, record, with_values)
        for record in islice(debugger.control_flow, MOST_VERDICTS)
    ]
    if not found:
        return "<p>No loop and no branch has run.</p>"
    more = len(debugger.control_flow) - len(found)
    rest = f"<p>{more:,} more loops and branches ran.</p>" if more > 0 else ""
    return f"<ul>{''.join(found)}</ul>{rest}"


def _item(debugger: loopscope.Debugger, record: ControlFlowRecord, with_values: bool) -> str:
    sentence, proof = _sentence(debugger, record, with_values)
    return f'<li><span class="address">{_place(record.address)}</span> {_marked(sentence)}{_proof(proof)}</li>'


def _proof(facts: Sequence[Fact]) -> str:
    """What it follows from, each fact below the one that needs it; nothing where there is none."""
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
    """A sentence as HTML, the names in it, which it has between backticks, as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", text(sentence, 2000))


def _sentence(
    debugger: loopscope.Debugger, record: ControlFlowRecord, with_values: bool
) -> tuple[str, Sequence[Fact]]:
    if with_values:
        try:
            found = loopscope.verdict(debugger, record.address)
            return found.sentence, found.proof
        except EngineError:
            pass  # a function has no verdict, and the record says all that there is
    said = record_sentence(record)
    return f"{said[:1].upper()}{said[1:]}.", ()


def tables(debugger: loopscope.Debugger, graphs: Mapping[str, int], *, with_values: bool) -> str:
    """A table for each execution of a loop, the first ones of many; ``graphs``: the first moment
    in each execution of a graph.
    """
    return "".join(
        unfolding(record, table(debugger, record, graphs, with_values=with_values))
        for record in loops(debugger)
    )


def loops(debugger: loopscope.Debugger) -> list[ControlFlowRecord]:
    """The executions of loops that are shown."""
    known = places(debugger.model)
    found = (
        record
        for record in debugger.control_flow
        if record.iterations and known[without_iterations(record.address)].node.type != IF
    )
    return list(islice(found, MOST_TABLES))


def unfolding(record: ControlFlowRecord, content: str) -> str:
    """What is told of one execution of a loop, below its name."""
    assert record.iterations is not None
    return f'<details open class="loop"><summary>{_place(record.address)}: {times(record.iterations)}</summary>{content}</details>'


def columns_of(
    debugger: loopscope.Debugger, record: ControlFlowRecord, *, with_values: bool
) -> LoopTableColumns:
    """Of its table; without values the branches alone."""
    found = loop_columns(places(debugger.model)[without_iterations(record.address)])
    return found if with_values else LoopTableColumns((), None, found.branches)


def rows_of(
    debugger: loopscope.Debugger, record: ControlFlowRecord, columns: LoopTableColumns
) -> list[IterationRow]:
    """The first iterations."""
    return rows(debugger, record.address, columns, range(min(record.iterations or 0, MOST_ROWS)))


def table(
    debugger: loopscope.Debugger,
    record: ControlFlowRecord,
    graphs: Mapping[str, int],
    *,
    with_values: bool,
) -> str:
    """A row for each iteration, the first ones of many."""
    columns = columns_of(debugger, record, with_values=with_values)
    condition = (columns.condition,) if columns.condition else ()
    heads = "".join(
        f"<th>{text(one.title, 60)}</th>"
        for one in (*columns.carried, *condition, *columns.branches)
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
    made = f"{more}<thead><tr><th>iteration</th>{heads}</tr></thead><tbody>{body}</tbody>"
    # Whoever has no pointer scrolls it by keys.
    region = f'tabindex="0" role="region" aria-label="Iterations of {_place(record.address)}"'
    return f'<div class="wide" {region}><table data-last="{end}">{made}</table></div>'


def _row(row: IterationRow, columns: LoopTableColumns, graphs: Mapping[str, int]) -> str:
    moment = f' data-moment="{graphs[row.place]}"' if row.place in graphs else ""
    return f"<tr{moment}><td>{row.iteration}</td>{''.join(_cells(row, columns))}</tr>"


def _cells(row: IterationRow, columns: LoopTableColumns) -> Iterator[str]:
    yield from (f"<td>{text(one, 120)}</td>" for one in row.carried)
    if columns.condition:
        yield f"<td>{text(row.condition, 60)}</td>"
    yield from (f"<td>{text(one, 60)}</td>" for one in row.branches)
