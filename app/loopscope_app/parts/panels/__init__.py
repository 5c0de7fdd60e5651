"""Panels beside the canvas, and ways to open a model."""
