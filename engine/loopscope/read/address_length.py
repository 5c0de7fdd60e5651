"""Limit on the total length of layer addresses.

Names nest, so deep bodies with long names would need far more memory than their file.
"""

from __future__ import annotations

from operator import attrgetter

from loopscope.ir.model import ModelGraph
from loopscope.read.file_limits import ReadLimits


def check_addresses(graph: ModelGraph, limits: ReadLimits) -> None:
    """Raise ``ValueError`` if the addresses of all layers together exceed ``limits.addresses``.

    The layers' own names are not counted.
    """
    total = 0
    waiting = [(graph, 0)]
    while waiting:
        nested, length = waiting.pop()
        total += length * len(nested.nodes)
        if total > limits.addresses:
            raise ValueError(
                "the addresses of layers inside nested bodies have more than"
                f" {limits.addresses} characters, the limit 'addresses':"
                " the names around them are too long"
            )
        waiting.extend(
            (body.graph, length + len(node.name))
            for node in filter(_BODIES, nested.nodes)
            for body in node.bodies
        )


_BODIES = attrgetter("bodies")
