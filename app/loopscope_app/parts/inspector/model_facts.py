"""Facts about the open model: format, producer, opsets, metadata, parameters and MACs."""

from __future__ import annotations

import streamlit as st

from loopscope.view import model_facts
from loopscope_app.describe.node_costs import bytes_text, model_costs
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    """Show a closed section with the facts of the model."""
    opened = session.model.opened
    if opened is None:
        return
    with st.expander("About this model", icon=":material/info:"):
        rows = list(model_facts(opened.model))
        result = model_costs(opened.model)
        if result is not None:
            cost = result.total
            rows.append(("parameters", f"{cost.parameters:,} ({bytes_text(cost.parameter_bytes)})"))
            if cost.macs:
                rows.append(("MACs", f"{cost.macs:,}"))
        markup.show(
            markup.facts((markup.text(name, 120), markup.text(text, 2_000)) for name, text in rows)
        )
