"""What a run is made from: every value in a numbered slot, every node an instruction with its
kernel bound.
"""
