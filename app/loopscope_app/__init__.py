"""Loopscope's screens: the only room that imports streamlit."""
