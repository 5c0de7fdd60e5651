"""Derivatives of a graph that is being built: nodes that walk back through those that are there."""
