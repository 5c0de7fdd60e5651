"""What a run may leave out because it makes no difference to what is asked for; each can be
switched off.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Optimise:
    """The optimisations of a run: all are on, unless one is set to False."""

    prune: bool = True
    """Operations that no output (or nothing that is fetched) needs do not run, in bodies too."""
    fold: bool = True
    """What a model computes of its constants alone is kept, instead of computed in every
    iteration and every run.
    """
    cse: bool = True
    """Common subexpressions: of operations of a graph that compute the same of the same values,
    one computes it for all.
    """


EVERYTHING = Optimise()
