"""The box of a folded group: what it is called, how much is in it, its loops, and in what it
differs from its like.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from loopscope.ir.model import LayerId, ModelGraph, Node
from loopscope.view.boxes import short_name
from loopscope.view.differences import differences
from loopscope.view.graph import ViewNode
from loopscope.view.group_titles import BLOCK, FunctionCall, group_title, mostly
from loopscope.view.grouping import CHAIN, Grouping
from loopscope.view.places import DrawnGraph

_LISTED = 10
_MOST_LOOPS = 100
"""Loops of one box that are followed while the model runs."""
Unlike = Mapping[str, Mapping[LayerId, str]]


def title_of(
    group: str, calls: Mapping[str, FunctionCall], nodes: Sequence[Node]
) -> tuple[str, str]:
    """Of a call the function; where there are several, which of them it is, the first one how
    many there are.
    """
    call = calls.get(group)
    if call is None:
        return group_title(group, nodes)
    which = (
        f"called {call.total} times" if call.number == 1 else f"call {call.number} of {call.total}"
    )
    return "Function", call.function if call.total == 1 else f"{call.function}, {which}"


def unlike(graph: ModelGraph, groups: Grouping) -> Unlike:
    """For each block of a graph in which of its operations it differs from the others of its
    kind.
    """
    alike: dict[str, dict[str, Sequence[LayerId]]] = defaultdict(dict)
    for group, members in groups.members.items():
        block = BLOCK.search(group)
        if block and block[4] and not block[3]:
            alike[f"{group[: block.start()]}~{block[1]}"][group] = [
                one for one in members if graph.by_id[one].constant is None
            ]
    found: dict[str, Mapping[LayerId, str]] = {}
    for blocks in alike.values():
        if len(blocks) > 1 and len({len(members) for members in blocks.values()}) == 1:
            found |= differences(graph, blocks)
    return found


def group_box(
    place: DrawnGraph,
    group: str,
    layers: Sequence[LayerId],
    title: tuple[str, str],
    cluster: str,
    differing: Unlike,
) -> ViewNode:
    """``layers``: what it holds, constants left out. Its id is still to be given."""
    nodes = [place.graph.by_id[layer] for layer in layers]
    loops = [place.at(node.id) for node in nodes if node.is_loop]
    differs = differing.get(group, {})
    lines = [
        f"{place.graph.by_id[layer].type} {short_name(place.graph.by_id[layer].name)}: {words}"
        for layer, words in differs.items()
    ]
    detail = ""
    if BLOCK.search(group):
        changed = mostly(place.graph.by_id[layer] for layer in differs)
        detail = f"unlike others: {changed}" if differs else mostly(nodes)
    return ViewNode(
        "", "folded", group, title[0], short_name(title[1]), detail, "shape" if group.endswith(CHAIN) else "other", cluster,
        badge=_holds(len(layers), len(loops)),
        members=tuple(place.at(layer) for layer in layers), loops=tuple(loops[:_MOST_LOOPS]),
        tooltip="\n".join([*lines[:_LISTED], *([f"and {len(lines) - _LISTED} more"] * (len(lines) > _LISTED)), kinds_of(nodes)]),
    )  # fmt: skip


def _holds(operations: int, loops: int) -> str:
    """What is in a box.

    >>> _holds(1, 0), _holds(1057, 2)
    ('1 operation', '1,057 operations, 2 loops')
    """
    counted = ((operations, "operation"), *(((loops, "loop"),) if loops else ()))
    return ", ".join(f"{number:,} {noun}{'s' * (number != 1)}" for number, noun in counted)


def kinds_of(nodes: Sequence[Node]) -> str:
    """What a folded box holds: the most frequent types first."""
    counted: dict[str, int] = {}
    for node in nodes:
        counted[node.type] = counted.get(node.type, 0) + 1
    ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return "\n".join(f"{count} × {short_name(type)}" for type, count in ranked[:8])
