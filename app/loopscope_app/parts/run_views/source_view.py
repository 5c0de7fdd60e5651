"""The same inputs in the source program, here, and in the runtime: differences and three
columns.
"""

from __future__ import annotations

from loopscope.errors import elided
from loopscope.ir import readable
from loopscope.peers import SourceAlone, SourceReport
from loopscope_app.actions import moves, selection
from loopscope_app.parts.widgets import chain, markup, row_table

KEY, TABLE = "beside_source", "source_table"


def show(report: SourceReport | SourceAlone | None) -> None:
    """Show the result; before it exists, what Compare will do."""
    if report is None:
        about = (
            "torch or TensorFlow runs the program with the same inputs, its loops and "
            "branches watched."
        )
        markup.show(
            f"{about} You see them beside the run here and the model's own runtime.", "quiet"
        )
        return
    match report:
        case SourceAlone():
            markup.show(f"{markup.chip('unfinished', 'bad')} {markup.sentence(report.sentence)}")
        case SourceReport():
            chip = markup.chip("equal", "good") if report.agrees else markup.chip("differs", "bad")
            markup.show(f"{chip} {markup.sentence(report.sentence)}")
            _differences(report)
    _table(report)


def _differences(report: SourceReport) -> None:
    """Show all differences inside, the earliest first."""
    rows = [
        (region.first, "other count" if region.kind != "cond" else "other branch")
        for region in report.regions
        if region.first is not None
    ]
    rows += [
        (value.first, "other value")
        for region in report.regions
        for value in region.values
        if value.first is not None
    ]
    rows.sort(key=lambda region: region[0].step)
    lines = [
        chain.ChainLine(
            elided(readable(first.address), 200), what, "", (f"{first.here} here  \u2260  "
            f"{first.there} in the source"), 0, "bad",
            f"{first.there} in {report.framework}, {first.here} in the file", True,
        )
        for first, what in rows
    ]  # fmt: skip
    chain.show(
        lines, key=KEY, on_pick=lambda number: _go(rows[number][0].step, rows[number][0].address)
    )


def _go(step: int, address: str) -> None:
    """Go to the moment after which the difference exists, and bring its place into view."""
    moves.seek(step)
    selection.reveal_place(address)


def _table(report: SourceReport | SourceAlone) -> None:
    head, *rows = report.table()
    if not rows:
        return
    addresses = (
        [region.address for region in report.regions] if isinstance(report, SourceReport) else []
    )

    def pick(number: int) -> None:
        if number < len(addresses):
            selection.reveal_place(addresses[number])

    row_table.show(("source = file", *head[1:]), rows, key=TABLE, now=None, on_pick=pick)
