"""Plan of a run: every value in a numbered slot, every node an instruction with its kernel
bound.
"""
