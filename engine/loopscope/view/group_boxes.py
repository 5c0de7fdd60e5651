"""Boxes of folded groups: title, number of operations, loops, and differences from similar
groups.
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

_MAX_LISTED = 10
_MAX_LOOPS = 100
"""Largest number of loops in one box that are followed while the model runs."""
BlockDifferences = Mapping[str, Mapping[LayerId, str]]


def box_title(
    group: str, calls: Mapping[str, FunctionCall], nodes: Sequence[Node]
) -> tuple[str, str]:
    """Return kind and name of a group; a function call has "called n times" or "call k of n" in its
    name.
    """
    call = calls.get(group)
    if call is None:
        return group_title(group, nodes)
    position = (
        f"called {call.total} times" if call.number == 1 else f"call {call.number} of {call.total}"
    )
    return "Function", call.function if call.total == 1 else f"{call.function}, {position}"


def block_differences(graph: ModelGraph, groups: Grouping) -> BlockDifferences:
    """Return for each block the operations in which it differs from the other blocks of its
    kind.
    """
    blocks_by_kind: dict[str, dict[str, Sequence[LayerId]]] = defaultdict(dict)
    for group, members in groups.members.items():
        block = BLOCK.search(group)
        if block and block[4] and not block[3]:
            blocks_by_kind[f"{group[: block.start()]}~{block[1]}"][group] = [
                layer for layer in members if graph.by_id[layer].constant is None
            ]
    differing: dict[str, Mapping[LayerId, str]] = {}
    for blocks in blocks_by_kind.values():
        if len(blocks) > 1 and len({len(members) for members in blocks.values()}) == 1:
            differing |= differences(graph, blocks)
    return differing


def group_box(
    place: DrawnGraph,
    group: str,
    layers: Sequence[LayerId],
    title: tuple[str, str],
    cluster: str,
    differing: BlockDifferences,
) -> ViewNode:
    """Return the box of a folded group, without id. ``layers`` are its nodes without constants."""
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
    unlisted = len(lines) - _MAX_LISTED
    return ViewNode(
        "",
        "folded",
        group,
        title[0],
        short_name(title[1]),
        detail,
        "shape" if group.endswith(CHAIN) else "other",
        cluster,
        badge=_content_words(len(layers), len(loops)),
        members=tuple(place.at(layer) for layer in layers),
        loops=tuple(loops[:_MAX_LOOPS]),
        tooltip="\n".join(
            [
                *lines[:_MAX_LISTED],
                *([f"and {unlisted} more"] if unlisted > 0 else []),
                kinds_of(nodes),
            ]
        ),
    )


def _content_words(operations: int, loops: int) -> str:
    """Return the number of operations and loops in a box, in words.

    >>> _content_words(1, 0), _content_words(1057, 2)
    ('1 operation', '1,057 operations, 2 loops')
    """
    counted = ((operations, "operation"), *(((loops, "loop"),) if loops else ()))
    return ", ".join(f"{number:,} {noun}{'s' * (number != 1)}" for number, noun in counted)


def kinds_of(nodes: Sequence[Node]) -> str:
    """Return the most frequent operation types with their counts, for a tooltip."""
    counts: dict[str, int] = {}
    for node in nodes:
        counts[node.type] = counts.get(node.type, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return "\n".join(f"{count} × {short_name(type)}" for type, count in ranked[:8])
