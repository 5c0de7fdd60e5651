"""Faults and oddities of a model, and the types and shapes that are known before it runs: diagnostics as data."""
