"""Translation of OpenVINO models to ONNX operations."""
