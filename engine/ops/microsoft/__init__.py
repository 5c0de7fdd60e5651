"""The operations that ONNX Runtime adds to ONNX, in the domain com.microsoft: files that it has optimized or quantized hold them."""
