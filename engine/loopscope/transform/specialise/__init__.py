"""Specialisation: what is constant for some inputs is computed once, and control flow goes."""
