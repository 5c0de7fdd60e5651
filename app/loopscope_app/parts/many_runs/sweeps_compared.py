"""The same inputs in another model or precision: which inputs change a count, an ending or a
branch.
"""

from __future__ import annotations

import streamlit as st

from loopscope.errors import elided
from loopscope.object_cache import cache_by_object
from loopscope.sweeps import Change, Changes, changes_between
from loopscope_app.actions import running_many
from loopscope_app.describe import sweep_charts
from loopscope_app.describe.sweep_charts import Theme
from loopscope_app.describe.sweep_words import said
from loopscope_app.parts.many_runs import pictures
from loopscope_app.parts.widgets import markup, place_lists
from loopscope_app.state.many_runs import Sweeping
from loopscope_app.state.user_session import UserSession

_MAX_LINES, _HEIGHT = 8, 200
_ROUNDINGS = ("bf16", "f16")


def show(session: UserSession, sweeping: Sweeping) -> None:
    """Show the choice of a second sweep and, after it has run, the differences."""
    with st.container(key="many_compare", horizontal=True, vertical_alignment="center"):
        if session.many.against is not None:
            title = markup.text(session.many.against_title, 60)
            markup.show(f"<b>Compared with {title}</b>")
        else:
            markup.show("In another model or a narrower type:", "quiet")
        with st.popover("Compare with", key="many_compare_with"):
            _choices(session)
    if session.many.against is not None:
        _outcome(session, sweeping, session.many.against)


def _choices(session: UserSession) -> None:
    with st.container(horizontal=True):
        for to in _ROUNDINGS:
            st.button(
                f"Floats in {to}",
                key=f"many_round_{to}",
                on_click=running_many.compare_rounded,
                args=(to,),
            )
    key = f"many_other_{session.many.generation}"
    st.file_uploader(
        "Or another model: model.xml with model.bin, or model.onnx",
        type=["xml", "bin", "onnx", "zip"],
        accept_multiple_files=True,
        key=key,
        on_change=running_many.compare_model,
        args=(key,),
    )


def _outcome(session: UserSession, sweeping: Sweeping, against: Sweeping) -> None:
    changes = _changes(against, sweeping)
    first, *rest = changes.sentences()
    chip = markup.chip("differs", "bad") if changes.changed else markup.chip("the same", "good")
    markup.show(f"{chip} {markup.sentence(first)}")
    if not changes.changed:
        for sentence in rest:
            markup.show(markup.sentence(sentence), "quiet")
        return
    largest = [
        (column.changed, column.largest)
        for column in changes.columns.values()
        if column.largest is not None
    ][:_MAX_LINES]
    place_lists.show_list(
        [_line(changed, change) for changed, change in largest],
        key="many_changes",
        on_pick=lambda number: running_many.open_sample(largest[number][1].sample),
    )
    pair = next(
        (
            pair
            for pair in changes.pairs
            if pair[0] in changes.columns and not pair[0].startswith("ended ")
        ),
        None,
    )
    if pair is not None:
        theme: Theme = "dark" if st.context.theme.type == "dark" else "light"
        chart = sweep_charts.one_against_other(
            sweeping.rows.slice(0, changes.samples),
            against.rows.slice(0, changes.samples),
            pair,
            theme,
        )
        pictures.show_chart(chart, f"many_against_chart_{session.many.generation}", _HEIGHT)


@cache_by_object(
    key=lambda against, sweeping: (id(sweeping), len(sweeping.rows), len(against.rows)),
    newest_only=True,
)
def _changes(against: Sweeping, sweeping: Sweeping) -> Changes:
    """Return the changes over the samples that both sweeps have run."""
    count = min(len(sweeping.rows), len(against.rows))
    changes = changes_between(sweeping.sweep.layout, against.sweep.layout)
    changes.add(sweeping.rows.slice(0, count), against.rows.slice(0, count))
    return changes


def _line(changed: int, largest: Change) -> place_lists.ChainLine:
    others = f"{changed:,} runs change, this one most" if changed > 1 else "one run changes"
    return place_lists.ChainLine(
        elided(said(largest.column), 200),
        "",
        others,
        f"{largest.one} \u2192 {largest.other}",
        0,
        "back",
        "Open this run",
    )
