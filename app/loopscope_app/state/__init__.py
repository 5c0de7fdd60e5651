"""State of a session, and state that all sessions share. Only ``loopscope_app.actions`` changes
it.
"""
