"""Stepping: the explicit state of a run, and the instructions that change it."""
