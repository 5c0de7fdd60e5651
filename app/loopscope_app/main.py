"""The page: the script that Streamlit runs for each visit and each click."""

from __future__ import annotations

if (
    __name__ == "__main__"
):  # the worker processes of many runs import this file too, and draw nothing
    from loopscope_app import visit

    visit.show()
