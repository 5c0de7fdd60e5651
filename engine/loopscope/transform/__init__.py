"""Models made from models: with gradients as further outputs, rounded to a narrower type,
computed in f64, or cut at a tensor.
"""
