"""Derivatives of operations, one file per category; catalogue rows refer to them beside the
kernels.
"""
