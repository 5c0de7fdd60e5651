"""TensorFlow graph files: facts that OpenVINO's conversion drops, and graphs rewritten for it."""
