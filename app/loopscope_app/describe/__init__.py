"""Plain data and words of a model and its run; nothing here knows Streamlit or a session."""
