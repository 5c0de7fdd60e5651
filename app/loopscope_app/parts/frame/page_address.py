"""The page's address. Opening a model or a view adds an entry to the browser's history; a moment of
the run replaces it.
"""

from __future__ import annotations

import streamlit as st

from loopscope_app.links.codec import in_current_words, written
from loopscope_app.links.current_link import current_link
from loopscope_app.state.user_session import UserSession, place, widget

_LINKED = "address_linked"
_STEPS_OF_HISTORY = ("model", "lesson", "view", "backward", "open")
_REPLACE = """
export default function ({ data }) {
  if (!data) return;
  const url = new URL(location.href);
  // After a step back in the browser, a slow page would replace the address of another one.
  const isHere = ([name, text]) => (url.searchParams.get(name) ?? "") === text;
  if (!Object.entries(data.page).every(isHere)) return;
  for (const name of [...url.searchParams.keys()]) {
    if (!(name in data.moment)) url.searchParams.delete(name);
  }
  for (const [name, text] of Object.entries(data.moment)) url.searchParams.set(name, text);
  if (url.href !== location.href) history.replaceState(history.state, "", url);
}
"""
_component = st.components.v2.component("loopscope_address", js=_REPLACE)


def show(session: UserSession) -> None:
    """Write the moment into the address, so that a link reopens it. Send nothing if the address is
    current.

    Streamlit's own way would make every step an entry of the browser's history.
    """
    link = current_link(session)
    if link is None:
        if (
            session.run.running is not None
            and session.model.opened is not None
            and session.model.opened.link
        ):
            place(_LINKED, _asked())  # what the address asks for is on its way
        return
    moment = written(link)
    opened = {name: moment[name] for name in _STEPS_OF_HISTORY if name in moment}
    if _asked() != opened:
        st.query_params.from_dict(opened)
    place(_LINKED, opened)
    page = {name: st.query_params.get(name, "") for name in _STEPS_OF_HISTORY}
    with st.container(key="address"):
        _component(key="address_bar", data={"moment": moment, "page": page}, height=1)


def moved() -> bool:
    """Return True if the user went back or forward in the browser, to another model or to none."""
    linked = widget(_LINKED)
    return linked is not None and _asked() != linked


def forget() -> None:
    """Remove the model from the address, because no model is open."""
    place(_LINKED, {})


def _asked() -> dict[str, str]:
    words = in_current_words(st.query_params.to_dict())
    return {name: text for name, text in words.items() if name in _STEPS_OF_HISTORY}
