"""The same run in the runtime of its model: the first value that differs, which a click goes to,
or how many values agree.
"""

from __future__ import annotations

from loopscope.errors import elided
from loopscope.ir import readable
from loopscope.peers import ComparisonReport, Fates, RuntimeFate, ValueDifference
from loopscope_app.actions import moves, selection
from loopscope_app.parts.widgets import chain, markup

KEY, FATES = "against", "fates"


def show(report: ComparisonReport | None, fates: Fates | None, runtime: str) -> None:
    """What came of a comparison, and what the runtime makes of loops and branches; before there
    is one, what it will do.
    """
    if report is None:
        about = (
            f"{runtime} runs the model with the same inputs, every value inside as an output too. "
        )
        markup.show(
            f"{about}You see the first that differs, and what it makes of each loop and branch.",
            "quiet",
        )
        return
    first = report.first
    if report.agrees:
        markup.show(
            f"{markup.chip('within one quantum' if report.quanta else 'equal', 'good')} {markup.sentence(report.sentence)}"
        )
    elif first is None:
        markup.show(f"{markup.chip('differs', 'bad')} {markup.sentence(report.sentence)}")
    else:
        markup.show(
            f"{markup.chip('differs', 'bad')} {markup.text(report.runtime)} first gives something else here:"
        )
        chain.show([_line(first, report)], key=KEY, on_pick=lambda _: _go(first))
    for one in report.outputs if first else ():
        markup.show(
            f"Output {markup.text(one.address)}: {markup.text(one.here)} here, {markup.text(one.there)} there",
            "quiet",
        )
    for text in filter(None, (report.cause, report.rounding) if first else ()):
        markup.show(markup.sentence(text), "quiet")
    left_out = [f"{count:,} {reason}" for reason, count in report.left_out.items()]
    told = (
        [report.refused]
        if report.refused
        else [f"Not compared: {', '.join(left_out)}."]
        if left_out
        else []
    )
    for text in told:
        markup.show(markup.sentence(text), "quiet")
    if fates is not None and fates.regions:
        markup.show(
            markup.section(f"What {markup.text(fates.runtime)} makes of loops and branches")
        )
        known = [one for one in fates.regions if one.became != "not told"]
        chain.show(
            [_fate_line(one) for one in known],
            key=FATES,
            on_pick=lambda number: selection.reveal_place(known[number].address),
        )
        if len(known) < len(fates.regions):
            markup.show(
                f"{len(fates.regions) - len(known):,} inside them cannot be seen from outside.",
                "quiet",
            )


def _fate_line(one: RuntimeFate) -> chain.ChainLine:
    return chain.ChainLine(
        elided(readable(one.address), 200),
        one.operation,
        "",
        one.badge,
        0,
        "branch" if one.became == "kept" else "bad",
        one.sentence,
        True,
    )


def _line(one: ValueDifference, report: ComparisonReport) -> chain.ChainLine:
    return chain.ChainLine(
        elided(readable(one.address), 200),
        "first other value",
        "",
        f"{one.here} here  \u2260  {one.there} there",
        0,
        "bad",
        report.sentence,
        True,
    )


def _go(one: ValueDifference) -> None:
    """To the moment after which the value is there, with its place in sight."""
    moves.seek(one.step)
    selection.reveal_place(one.address)
