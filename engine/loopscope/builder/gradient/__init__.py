"""Derivatives of a graph under construction: backward nodes for its forward nodes."""
