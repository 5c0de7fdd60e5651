"""How long the addresses of a model get: names nest, and deep bodies with long names would cost
far more memory than their file.
"""

from __future__ import annotations

from operator import attrgetter

from loopscope.ir.model import ModelGraph
from loopscope.read.file_limits import ReadLimits


def check_addresses(graph: ModelGraph, limits: ReadLimits) -> None:
    """``ValueError`` when the addresses of all layers together, the layers' own names apart, are
    longer than a file may make them.
    """
    total = 0
    waiting = [(graph, 0)]
    while waiting:
        inner, length = waiting.pop()
        total += length * len(inner.nodes)
        if total > limits.addresses:
            raise ValueError(
                f"the addresses of layers inside nested bodies have more than {limits.addresses} characters, the limit 'addresses':"
                " the names around them are too long"
            )
        waiting.extend(
            (body.graph, length + len(node.name))
            for node in filter(_BODIES, inner.nodes)
            for body in node.bodies
        )


_BODIES = attrgetter("bodies")
