"""What lies beside the canvas, and what opens a model."""
