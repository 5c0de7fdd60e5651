"""The fate of each loop and branch in the model's runtime."""

from __future__ import annotations

import streamlit as st

from loopscope.errors import elided
from loopscope.ir import readable
from loopscope.peers import RuntimeFate, runtime_of
from loopscope_app.actions import selection, timing
from loopscope_app.describe.node_index import places
from loopscope_app.parts.widgets import chain, markup
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession

KEY = "fates"


def ask(session: UserSession, opened: Opened) -> None:
    """Show the button that requests the fates, if the model has loops or branches."""
    runtime = runtime_of(opened.model)
    has_regions = any(place.node.bodies for place in places(opened.model).values())
    if runtime and has_regions and session.model.fates is None:
        st.button(
            f"Loops in {runtime}",
            key="fates_ask",
            on_click=timing.ask_runtime,
            help=f"{runtime} compiles the model and lists what it runs in place of each loop and "
            "branch",
        )


def show(session: UserSession) -> None:
    """Show the fate of each loop and branch, once they are known."""
    fates = session.model.fates
    if fates is None:
        return
    markup.show(f"<b>Loops and branches in {markup.text(fates.runtime)}</b>")
    known = [region for region in fates.regions if region.became != "not told"]
    chain.show(
        [_line(region) for region in known],
        key=KEY,
        on_pick=lambda number: selection.reveal_loop(known[number].address),
    )
    unknown = len(fates.regions) - len(known)
    if unknown:
        nested = "1 nested loop or branch is" if unknown == 1 else f"{unknown:,} nested ones are"
        markup.show(f"{nested} not visible from outside.", "quiet")


def _line(region: RuntimeFate) -> chain.ChainLine:
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
