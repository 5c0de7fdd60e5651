"""Operators that are loops over time, each with the body of its loop."""

from loopscope.transform.recurrences.table import ROWS, Recurrence, recurrence_of

__all__ = ["ROWS", "Recurrence", "recurrence_of"]
