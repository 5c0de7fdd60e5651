"""Explicit state of a run, and the instructions that change it step by step."""
