"""The operations of ONNX: declared by the schemas of the onnx package, computed by its reference
kernels.
"""
