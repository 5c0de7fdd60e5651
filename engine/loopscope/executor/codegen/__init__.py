"""Loop nests as generated Python functions, and the conversion of their local variables to explicit
state.
"""
