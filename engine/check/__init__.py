"""What is wrong with a model, what is odd about it, and what is known of its tensors before it runs: diagnostics as data."""
