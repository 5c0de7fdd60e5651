"""The derivatives of operations, a file for each category; rows name them as they name their
kernels.
"""
