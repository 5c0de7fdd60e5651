"""What TensorFlow's graph files say themselves, beside what OpenVINO makes of them: nodes,
operations without a conversion, v1 frames.
"""
