"""Rows of ONNX's table by category."""
