"""Where gradients stop: ``back_prop`` in the ``rt_info`` of a node, which may say that none goes
through it.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.ir.model import Node

_BACK_PROP = "back_prop"
"""Its name in the rt_info, as in tf.while_loop."""
NO_WAY_BACK: Mapping[str, object] = {_BACK_PROP: {"version": "0", "value": "false"}}
"""What the rt_info of a node holds that no gradient goes through."""


def has_way_back(node: Node) -> bool:
    """Whether gradients may go through a node."""
    said = node.rt_info.get(_BACK_PROP)
    return not (isinstance(said, Mapping) and said.get("value") == "false")
