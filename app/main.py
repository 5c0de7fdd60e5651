"""The page: which screen is shown, and what all screens share."""

from __future__ import annotations

import streamlit as st

from app import canvas, links, style
from app.parts import address
from app.screens import debugger, gallery, learn
from app.session import current

st.set_page_config(page_title="Loopscope", page_icon=style.ICON, layout="wide", initial_sidebar_state="collapsed")
style.apply()
canvas.prepare()
session = current()
if not session.arrived:
    links.arrive(session)
elif address.moved():
    links.follow(session)
if session.opened is None:
    gallery.show(session)
elif session.learning.lesson:
    learn.show(session)
else:
    debugger.show(session)
