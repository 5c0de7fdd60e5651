"""Derivatives of operations, one file per category.

Catalogue rows refer to them beside the kernels.
"""
