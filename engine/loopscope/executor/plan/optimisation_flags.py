"""Optimisations of a run that do not change the requested values. Each can be switched off."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Optimise:
    """Optimisations of a run. All are on, unless one is set to False."""

    prune: bool = True
    """Operations that no output and no fetched value needs do not run, also inside bodies."""
    fold: bool = True
    """Results that depend only on constants are stored, instead of computed in every iteration and
    run.
    """
    cse: bool = True
    """Common subexpressions: operations of a graph with equal inputs and attributes are computed
    once.
    """


EVERYTHING = Optimise()
