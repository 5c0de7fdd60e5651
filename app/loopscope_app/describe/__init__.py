"""Plain data and words about a model and its run, independent of Streamlit and sessions."""
