"""The same inputs in the program that the model was converted from, here, and in the runtime:
where they part, and three columns.
"""

from __future__ import annotations

from loopscope.errors import elided
from loopscope.ir import readable
from loopscope.peers import SourceAlone, SourceReport
from loopscope_app.actions import moves, selection
from loopscope_app.parts.widgets import chain, markup, row_table

KEY, TABLE = "beside_source", "source_table"


def show(report: SourceReport | SourceAlone | None) -> None:
    """What came of it; before it was asked for, what it will do."""
    if report is None:
        about = "torch or TensorFlow runs the program with the same inputs, its loops and branches watched."
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
    """All that differs inside, the earliest first; a click goes there."""
    found = [
        (one.first, "other count" if one.kind != "cond" else "other branch")
        for one in report.regions
        if one.first is not None
    ]
    found += [
        (value.first, "other value")
        for one in report.regions
        for value in one.values
        if value.first is not None
    ]
    found.sort(key=lambda one: one[0].step)
    lines = [
        chain.ChainLine(
            elided(readable(first.address), 200), what, "", f"{first.here} here  \u2260  {first.there} in the source", 0, "bad",
            f"{first.there} in {report.framework}, {first.here} in the file", True,
        )
        for first, what in found
    ]  # fmt: skip
    chain.show(
        lines, key=KEY, on_pick=lambda number: _go(found[number][0].step, found[number][0].address)
    )


def _go(step: int, address: str) -> None:
    """To the moment after which the difference is there, with its place in sight."""
    moves.seek(step)
    selection.reveal_place(address)


def _table(report: SourceReport | SourceAlone) -> None:
    head, *rows = report.table()
    if not rows:
        return
    addresses = [one.address for one in report.regions] if isinstance(report, SourceReport) else []

    def pick(number: int) -> None:
        if number < len(addresses):
            selection.reveal_place(addresses[number])

    row_table.show(("source = file", *head[1:]), rows, key=TABLE, now=None, on_pick=pick)
