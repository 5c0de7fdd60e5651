"""What a session holds, and what all sessions share; read by everything above, written by
``loopscope_app.actions``.
"""
