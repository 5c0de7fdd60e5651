"""Transformations of models: gradients as outputs, rounding to a narrower type, f64, cuts."""
