"""ONNX operations: rows of kernels and derivatives over the schemas of the onnx package, whose
reference kernels are the fallback.
"""
