"""Writing of models as ONNX files."""
