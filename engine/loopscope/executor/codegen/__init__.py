"""Nests of loops as generated Python functions, and the way from such a function back to the
explicit state.
"""
