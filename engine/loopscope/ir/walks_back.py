"""Which forward Loop or If a backward one computes the gradients of, as the ``rt_info`` of the
backward one keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopscope.ir.model import Node

_SECTION, _BACKWARD_OF, _GRADIENTS_OF = "loopscope", "backward_of", "gradients_of"


@dataclass(frozen=True, slots=True)
class WalksBack:
    """The node that is walked back, which is in the same graph."""

    forward: str
    """Its name."""
    inputs: tuple[tuple[int, ...], ...] = ()
    """Of each output, the numbers of that node's inputs whose gradient it is or is made of;
    nothing where it is of none.
    """

    @staticmethod
    def of(node: Node) -> WalksBack | None:
        """What a node says; None where it says nothing of the kind. A file may say anything."""
        said = node.rt_info.get(_SECTION)
        name = said.get(_BACKWARD_OF) if isinstance(said, Mapping) else None
        if not isinstance(name, str) or not isinstance(said, Mapping):
            return None
        return WalksBack(name, _numbers(said.get(_GRADIENTS_OF)))

    def as_rt_info(self) -> Mapping[str, object]:
        """To be read by ``of``."""
        return {
            _SECTION: {
                _BACKWARD_OF: self.forward,
                _GRADIENTS_OF: ",".join("+".join(map(str, one)) for one in self.inputs),
            }
        }


def walks_back(forward: Node, inputs: Sequence[Sequence[int]]) -> Mapping[str, object]:
    """The rt_info of what walks a node back; ``inputs``: of each output, the inputs of that node
    whose gradient it is or is made of.
    """
    return WalksBack(forward.name, tuple(map(tuple, inputs))).as_rt_info()


def _numbers(said: object) -> tuple[tuple[int, ...], ...]:
    """With a comma between outputs, and a plus between several inputs of one.

    >>> _numbers("2,,3+4"), _numbers("x"), _numbers(None)
    (((2,), (), (3, 4)), (), ())
    """
    if not isinstance(said, str):
        return ()
    parts = [[one for one in part.split("+") if one] for part in said.split(",")]
    if not all(one.isascii() and one.isdigit() and len(one) < 10 for part in parts for one in part):
        return ()
    return tuple(tuple(map(int, part)) for part in parts)
