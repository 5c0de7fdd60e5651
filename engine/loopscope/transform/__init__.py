"""Transformations of models: gradients as outputs, rounding, f64, cuts, opened operators."""
