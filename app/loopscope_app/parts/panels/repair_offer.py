"""The repair of a problem: what changes and why, a comparison, and the repaired model."""

from __future__ import annotations

import streamlit as st

from loopscope.ir import readable
from loopscope.transform import REPAIRABLE, Repair, repair
from loopscope_app.actions import derived_models
from loopscope_app.parts.widgets import markup
from loopscope_app.state.open_model import Opened


def show(opened: Opened, code: str) -> None:
    """Show the repair of one kind of problem, if there is one."""
    if code not in REPAIRABLE:
        return
    with st.popover("Repair", icon=":material/build:", key=f"problem_repair_{code}"):
        _, repairs = repair(opened.model, [code])
        for each in repairs:
            _show_change(each)
        if all(each.refused for each in repairs):
            return
        st.button(
            "Compare before and after",
            icon=":material/compare_arrows:",
            key=f"problem_compare_{code}",
            on_click=derived_models.compare_before_and_after,
            args=(code,),
            help="Runs both models in their runtime with the current inputs",
        )
        st.download_button(
            "Download the repaired model",
            lambda: derived_models.repaired_model(opened.model, code),
            file_name=f"{opened.file_name()}-repaired.zip",
            icon=":material/download:",
            key=f"problem_repaired_{code}",
            on_click="ignore",
            help="The opened model does not change",
        )


def _show_change(each: Repair) -> None:
    place = f"<b>{markup.text(readable(each.address), 120)}</b>"
    if each.refused:
        markup.show(f"{place}: not repaired. {markup.text(each.refused, 300)}", "quiet")
        return
    markup.show(f"{place}: {markup.text(each.change, 300)}")
    markup.show(markup.text(each.reason, 300), "quiet")
