"""Comparison of a run of a file with the program it was converted from, in the program's own
framework.
"""
