"""Entries in ``rt_info``: gradients, operators opened as loops, parallel iterations, and ticks.

Those of gradients name the forward node of a backward node, and ``back_prop``. The entry of an
opened operator is in the Loop that stands for it, such as an LSTM. Parallel iterations of a loop
and ticks of an operation are hints for a schedule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopscope.ir.address import nodes
from loopscope.ir.model import Model, Node

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


_KEY = "opened_operator"
"""Key in the rt_info of the Loop."""


def opened_from(type: str, opset: str) -> Mapping[str, object]:
    """Return the rt_info of a Loop that stands for an operator.

    >>> opened_from("LSTM", "ai.onnx 14")
    {'opened_operator': {'version': '0', 'value': 'LSTM ai.onnx 14'}}
    """
    return {_KEY: {"version": "0", "value": f"{type} {opset}".strip()}}


def opened_operator(node: Node) -> str:
    """Return the type and opset of the operator that a Loop stands for; empty for other nodes."""
    content = node.rt_info.get(_KEY)
    text = content.get("value") if isinstance(content, Mapping) else content
    return text if isinstance(text, str) and node.is_loop else ""


def opened_operators(model: Model) -> list[str]:
    """Return the addresses of the Loops that stand for operators, in document order."""
    return [address for address, node in nodes(model) if opened_operator(node)]


PARALLEL_ITERATIONS = "parallel_iterations"
"""Key in the rt_info of a loop, named as in tf.while_loop."""
USUAL_WINDOW = 10
"""Number of parallel iterations of a loop without the hint, as in TensorFlow."""
TICKS = "ticks"
"""Key in the rt_info of an operation for its duration in a schedule."""
_MAX_DIGITS = 9


def window_of(loop: Node) -> int:
    """Return the number of iterations of a loop that may run at once, at least 1.

    The default is ``USUAL_WINDOW`` if the rt_info has no valid number.
    """
    return _whole_number(loop, PARALLEL_ITERATIONS, USUAL_WINDOW)


def ticks_of(node: Node) -> int:
    """Return the ticks that an operation takes in a schedule, at least 1.

    The default is 1 if the ``rt_info`` has no valid number.
    """
    return _whole_number(node, TICKS, 1)


def _whole_number(node: Node, name: str, default: int) -> int:
    content = node.rt_info.get(name)
    text = content.get("value") if isinstance(content, Mapping) else content
    if (
        not isinstance(text, str)
        or not (text.isascii() and text.isdecimal())
        or len(text) > _MAX_DIGITS
    ):
        return default
    return max(1, int(text))
