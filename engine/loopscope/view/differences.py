"""In what the blocks of one kind differ: the operations that are not as in most of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

from loopscope.errors import neutral
from loopscope.ir.model import LayerId, ModelGraph, Node
from loopscope.view.boxes import tensor_text

_LONGEST = 60
_MAY_BE_UNKNOWN = frozenset({"makes"})
"""A tensor of which the file does not tell the shape is not told apart by it."""
Facts = Mapping[str, Hashable]


def differences(
    graph: ModelGraph, blocks: Mapping[str, Sequence[LayerId]]
) -> Mapping[str, Mapping[LayerId, str]]:
    """For each block that differs: its operations that do, each with a line that says in what.
    ``blocks``: their nodes, in one order.

    What differs from block to block, all of them, is a name (of a variable, for example), and names
    do not count.
    """
    found: dict[str, dict[LayerId, str]] = {}
    for place in zip(*blocks.values(), strict=True):
        facts = [_facts(graph, graph.by_id[layer]) for layer in place]
        if all(one == facts[0] for one in facts):
            continue
        for key in dict.fromkeys(key for one in facts for key in one):
            counted = Counter(
                one.get(key) for one in facts if key in one or key not in _MAY_BE_UNKNOWN
            )
            usual, times = counted.most_common(1)[0]
            if times == 1 and len(facts) > 2 and key not in _MAY_BE_UNKNOWN:
                continue
            for block, layer, one in zip(blocks, place, facts, strict=True):
                if one.get(key) != usual and (key in one or key not in _MAY_BE_UNKNOWN):
                    words = f"{key} {_text(one.get(key))}, elsewhere {_text(usual)}"
                    before = found.setdefault(block, {}).get(layer)
                    found[block][layer] = f"{before}; {words}" if before else words
    return found


def _facts(graph: ModelGraph, node: Node) -> Facts:
    facts: dict[str, Hashable] = {
        neutral(key, 30): str(value) for key, value in node.attributes.items()
    }
    facts["is a"] = node.type
    if all(port.shape.rank is not None for port in node.outputs):
        facts["makes"] = " ".join(tensor_text(port) for port in node.outputs)
    for number, source in enumerate(graph.sources[node.id]):
        made = None if source is None else graph.by_id[source.layer]
        if made is not None and made.constant is not None:
            facts[f"constant {number}"] = tensor_text(made.outputs[0])
    if node.bodies:
        facts["body"] = tuple(_inside(node))
    return facts


def _inside(node: Node) -> list[str]:
    found: list[str] = []
    waiting = [body.graph for body in node.bodies]
    while waiting:
        graph = waiting.pop()
        for one in graph.nodes:
            found.append(f"{one.type} {' '.join(tensor_text(port) for port in one.outputs)}")
            waiting.extend(body.graph for body in one.bodies)
    return found


def _text(fact: Hashable) -> str:
    if isinstance(fact, tuple):
        return f"of {len(fact)} operations"
    return "none" if fact is None else neutral(str(fact), _LONGEST)
