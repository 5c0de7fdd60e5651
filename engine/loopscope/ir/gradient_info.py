"""Gradient information in ``rt_info``: the forward node of a backward node, and ``back_prop``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopscope.ir.model import Node

_SECTION, _BACKWARD_OF, _GRADIENTS_OF = "loopscope", "backward_of", "gradients_of"
_BACK_PROP = "back_prop"
"""Key in the rt_info, named as in tf.while_loop."""
NO_WAY_BACK: Mapping[str, object] = {_BACK_PROP: {"version": "0", "value": "false"}}
"""The rt_info of a node that blocks gradients."""


@dataclass(frozen=True, slots=True)
class WalksBack:
    """The forward Loop or If whose gradients a backward node of the same graph computes."""

    forward: str
    """Name of the forward node."""
    inputs: tuple[tuple[int, ...], ...] = ()
    """Numbers of the forward inputs whose gradients each output contributes to."""

    @staticmethod
    def of(node: Node) -> WalksBack | None:
        """Return the information of a node; None where the rt_info has none or is malformed."""
        section = node.rt_info.get(_SECTION)
        name = section.get(_BACKWARD_OF) if isinstance(section, Mapping) else None
        if not isinstance(name, str) or not isinstance(section, Mapping):
            return None
        return WalksBack(name, _parse_numbers(section.get(_GRADIENTS_OF)))

    def as_rt_info(self) -> Mapping[str, object]:
        """Return the rt_info that ``of`` reads."""
        return {
            _SECTION: {
                _BACKWARD_OF: self.forward,
                _GRADIENTS_OF: ",".join("+".join(map(str, numbers)) for numbers in self.inputs),
            }
        }


def walks_back(forward: Node, inputs: Sequence[Sequence[int]]) -> Mapping[str, object]:
    """Return the rt_info of a backward node.

    ``inputs`` are, for each output, the forward inputs whose gradients it contributes to.
    """
    return WalksBack(forward.name, tuple(map(tuple, inputs))).as_rt_info()


def has_way_back(node: Node) -> bool:
    """Return True if gradients may flow through a node."""
    content = node.rt_info.get(_BACK_PROP)
    return not (isinstance(content, Mapping) and content.get("value") == "false")


def _parse_numbers(text: object) -> tuple[tuple[int, ...], ...]:
    """Parse numbers separated by a comma between outputs and by a plus inside an output.

    >>> _parse_numbers("2,,3+4"), _parse_numbers("x"), _parse_numbers(None)
    (((2,), (), (3, 4)), (), ())
    """
    if not isinstance(text, str):
        return ()
    parts = [[number for number in part.split("+") if number] for part in text.split(",")]
    numbers = [number for part in parts for number in part]
    if not all(number.isascii() and number.isdigit() and len(number) < 10 for number in numbers):
        return ()
    return tuple(tuple(map(int, part)) for part in parts)
