"""The view Many runs: inputs, progress, findings, pictures and a table."""

from __future__ import annotations

import streamlit as st

from loopscope_app.actions import running_many
from loopscope_app.parts.frame import header, notice, page_address
from loopscope_app.parts.many_runs import (
    finding_lines,
    inputs_choice,
    outcome_line,
    pictures,
    runs_table,
    sweep_progress,
    sweeps_compared,
)
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    opened = session.model.opened
    if opened is None:
        return
    over = running_many.is_over(session)
    with st.container(key="header"):
        header.show(session)
    notice.show(session)
    inputs_choice.show(session, opened)
    sweeping = session.many.sweeping
    if not over:
        sweep_progress.show()
    elif sweeping is not None:
        outcome_line.show(sweeping)
        finding_lines.show(sweeping.sweep.summary)
        pictures.show(session, sweeping)
        sweeps_compared.show(session, sweeping)
        runs_table.show(session, sweeping.rows)
    page_address.show(session)
