"""Differences between blocks of a kind: operations that are not as in most of the blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

from loopscope.errors import neutral
from loopscope.ir.model import LayerId, ModelGraph, Node
from loopscope.view.boxes import tensor_text

_MAX_TEXT = 60
_MAY_BE_UNKNOWN = frozenset({"makes"})
"""Facts that are compared only where they are known, because a file may omit shapes."""
Facts = Mapping[str, Hashable]


def differences(
    graph: ModelGraph, blocks: Mapping[str, Sequence[LayerId]]
) -> Mapping[str, Mapping[LayerId, str]]:
    """Return for each deviating block its deviating operations, each with a line of explanation.

    ``blocks`` contains the nodes of each block in corresponding order. A fact that differs between
    all blocks is considered a name (of a variable, for example) and ignored.
    """
    result: dict[str, dict[LayerId, str]] = {}
    for counterparts in zip(*blocks.values(), strict=True):
        facts = [_facts(graph, graph.by_id[layer]) for layer in counterparts]
        if all(fact == facts[0] for fact in facts):
            continue
        for key in dict.fromkeys(key for fact in facts for key in fact):
            counted = Counter(
                fact.get(key) for fact in facts if key in fact or key not in _MAY_BE_UNKNOWN
            )
            usual, times = counted.most_common(1)[0]
            if times == 1 and len(facts) > 2 and key not in _MAY_BE_UNKNOWN:
                continue
            for block, layer, fact in zip(blocks, counterparts, facts, strict=True):
                if fact.get(key) != usual and (key in fact or key not in _MAY_BE_UNKNOWN):
                    words = f"{key} {_text(fact.get(key))}, elsewhere {_text(usual)}"
                    before = result.setdefault(block, {}).get(layer)
                    result[block][layer] = f"{before}; {words}" if before else words
    return result


def _facts(graph: ModelGraph, node: Node) -> Facts:
    facts: dict[str, Hashable] = {
        neutral(key, 30): str(value) for key, value in node.attributes.items()
    }
    facts["is a"] = node.type
    if all(port.shape.rank is not None for port in node.outputs):
        facts["makes"] = " ".join(tensor_text(port) for port in node.outputs)
    for number, source in enumerate(graph.sources[node.id]):
        source_node = None if source is None else graph.by_id[source.layer]
        if source_node is not None and source_node.constant is not None:
            facts[f"constant {number}"] = tensor_text(source_node.outputs[0])
    if node.bodies:
        facts["body"] = tuple(_inside(node))
    return facts


def _inside(node: Node) -> list[str]:
    lines: list[str] = []
    waiting = [body.graph for body in node.bodies]
    while waiting:
        graph = waiting.pop()
        for node_inside in graph.nodes:
            lines.append(
                f"{node_inside.type} {' '.join(tensor_text(port) for port in node_inside.outputs)}"
            )
            waiting.extend(body.graph for body in node_inside.bodies)
    return lines


def _text(fact: Hashable) -> str:
    if isinstance(fact, tuple):
        return f"of {len(fact)} operations"
    return "none" if fact is None else neutral(str(fact), _MAX_TEXT)
