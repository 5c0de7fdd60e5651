"""The same run in a runtime: the first value that differs, or the number of values that agree."""

from __future__ import annotations

from loopscope.errors import elided
from loopscope.ir import readable
from loopscope.peers import ComparisonReport, Fates, RuntimeFate, ValueDifference
from loopscope_app.actions import moves, selection
from loopscope_app.parts.widgets import chain, markup

KEY, FATES = "against", "fates"


def show(report: ComparisonReport | None, fates: Fates | None, runtime: str) -> None:
    """Show the result of a comparison and what the runtime runs in place of each loop; before it,
    what Compare will do.
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
            f"{markup.chip('within one quantum' if report.quanta else 'equal', 'good')} "
            f"{markup.sentence(report.sentence)}"
        )
    elif first is None:
        markup.show(f"{markup.chip('differs', 'bad')} {markup.sentence(report.sentence)}")
    else:
        markup.show(
            f"{markup.chip('differs', 'bad')} {markup.text(report.runtime)} first gives "
            "something else here:"
        )
        chain.show([_line(first, report)], key=KEY, on_pick=lambda _: _go(first))
    for entry in report.outputs if first else ():
        markup.show(
            (
                f"Output {markup.text(entry.address)}: {markup.text(entry.here)} here, "
                f"{markup.text(entry.there)} there"
            ),
            "quiet",
        )
    for text in filter(None, (report.cause, report.rounding) if first else ()):
        markup.show(markup.sentence(text), "quiet")
    left_out = [f"{count:,} {reason}" for reason, count in report.left_out.items()]
    summary = (
        [report.refused]
        if report.refused
        else [f"Not compared: {', '.join(left_out)}."]
        if left_out
        else []
    )
    for text in summary:
        markup.show(markup.sentence(text), "quiet")
    if fates is not None and fates.regions:
        markup.show(
            markup.section(f"What {markup.text(fates.runtime)} makes of loops and branches")
        )
        known = [entry for entry in fates.regions if entry.became != "not told"]
        chain.show(
            [_fate_line(entry) for entry in known],
            key=FATES,
            on_pick=lambda number: selection.reveal_place(known[number].address),
        )
        if len(known) < len(fates.regions):
            markup.show(
                f"{len(fates.regions) - len(known):,} inside them cannot be seen from outside.",
                "quiet",
            )


def _fate_line(region: RuntimeFate) -> chain.ChainLine:
    return chain.ChainLine(
        elided(readable(region.address), 200),
        region.operation,
        "",
        region.badge,
        0,
        "branch" if region.became == "kept" else "bad",
        region.sentence,
        True,
    )


def _line(difference: ValueDifference, report: ComparisonReport) -> chain.ChainLine:
    return chain.ChainLine(
        elided(readable(difference.address), 200),
        "first other value",
        "",
        f"{difference.here} here  \u2260  {difference.there} there",
        0,
        "bad",
        report.sentence,
        True,
    )


def _go(difference: ValueDifference) -> None:
    """Go to the moment after which the value exists, and bring its place into view."""
    moves.seek(difference.step)
    selection.reveal_place(difference.address)
