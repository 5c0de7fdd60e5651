"""Boxes of groups: title, number of operations, loops, and differences from similar groups.

A group is titled by its scope, by its position among similar blocks, or by its most frequent
operations. Differences are operations that are not as in most of the blocks of a kind.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from loopscope.errors import neutral
from loopscope.ir.address import decode
from loopscope.ir.model import LayerId, Model, ModelGraph, Node
from loopscope.view.boxes import DrawnGraph, short_name, tensor_text
from loopscope.view.colours import Family, family_of
from loopscope.view.graph import ViewNode
from loopscope.view.grouping import CHAIN, OUTER, Grouping, is_group
from loopscope.view.partition import has_span

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


BLOCK = re.compile(r"~([A-Z]+)(\d+)(?:-(\d+))?(?:\.(\d+))?~\d+\.\.\d+$")
"""End of a block's address: letter, number, last number of several blocks, total number."""
_MAX_TYPES = 3
"""Number of operation types in a title."""
_MINOR_OPERATIONS = frozenset(
    {"Parameter", "Result", "Constant", "Const", "Identity", "Convert", "Cast"}
    | {"ConstantOfShape", "Reshape", "Squeeze", "Unsqueeze", "Transpose"}
)
"""Operations that characterise a computation least. They are named if all are of this kind."""
_RANK_OF_FAMILY: Mapping[Family, int] = {"region": 0, "matrix": 1, "sequence": 1}


def group_title(address: str, nodes: Iterable[Node] = ()) -> tuple[str, str]:
    """Return kind and name of a group. ``nodes`` are its nodes, by which a stretch is named.

    >>> group_title("main/encoder%2Flayer%2F*"), group_title("main/Concat_7~shape")
    (('Scope', 'encoder/layer'), ('Shape arithmetic', 'Concat_7'))
    >>> group_title("main/%2Fencoder%2Flayers.0%2F*")
    ('Scope', 'encoder/layers.0')
    >>> group_title("main/*~A3.24~120..163"), group_title("main/*~A24~34..1066")
    (('Block A', '3 of 24'), ('Block A', '× 24'))
    >>> group_title("main/*~A1-32.1000~0..3200")
    ('Blocks A', '1 to 32 of 1000')
    >>> from loopscope.ir.model import LayerId
    >>> kinds = enumerate(("Add", "Add", "MatMul"))
    >>> group_title("main/*~0..2", [Node(LayerId(id), f"x{id}", kind) for id, kind in kinds])
    ('MatMul, Add', '')
    """
    label = address.rpartition("/")[2]
    if label == OUTER:
        return "Outer values", ""
    if label.endswith(CHAIN):
        return "Shape arithmetic", decode(label.removesuffix(CHAIN))
    if block := BLOCK.search(label):
        letter, number, last, total = block.groups()
        if last is not None:
            return f"Blocks {letter}", f"{number} to {last} of {total}"
        return f"Block {letter}", f"{number} of {total}" if total else f"× {number}"
    if has_span(label):
        members = list(nodes)
        return mostly(members) or "Operations", f"× {len(members)}" if len(
            {node.type for node in members}
        ) == 1 else ""
    return "Scope", decode(label.partition("*")[0]).strip("/.")


def mostly(nodes: Iterable[Node]) -> str:
    """Return the most frequent operation types, after control flow and matrix products."""
    counted = Counter(node.type for node in nodes)
    ranked = sorted(
        counted,
        key=lambda type: (
            _RANK_OF_FAMILY.get(family_of(type), 2),
            type in _MINOR_OPERATIONS,
            -counted[type],
            type,
        ),
    )
    return ", ".join(neutral(type, 20) for type in ranked[:_MAX_TYPES])


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A group that is one of several calls of a function."""

    function: str
    number: int
    """Number of the call, from 1."""
    total: int


def named_scopes(model: Model) -> frozenset[str]:
    """Return the groups that the model declares as named scopes (``graph.scope`` of
    ``loopscope.builder``).
    """
    return frozenset(text for text in _declared_section(model, "scopes").values() if is_group(text))


def function_calls(model: Model) -> Mapping[str, FunctionCall]:
    """Return the groups that the model declares as function calls, by address.

    ``loopscope.builder.branches`` writes the declarations.
    """
    groups = {
        key: text for key, text in _declared_section(model, "functions").items() if is_group(text)
    }
    names = _declared_section(model, "function_names")
    # Files of older versions do not store function names: each call counts as a function of its
    # own.
    of_function: dict[str, list[str]] = defaultdict(list)
    for key, group in groups.items():
        of_function[names.get(key, group_title(group)[1])].append(group)
    return {
        group: FunctionCall(function, number, len(calls))
        for function, calls in of_function.items()
        for number, group in enumerate(calls, 1)
    }


def _declared_section(model: Model, section: str) -> Mapping[str, str]:
    """Return a section of the model's ``loopscope`` rt_info, which in a file may contain
    anything.
    """
    own = model.rt_info.get("loopscope")
    content = own.get(section) if isinstance(own, Mapping) else None
    return (
        {key: text for key, text in content.items() if isinstance(text, str)}
        if isinstance(content, Mapping)
        else {}
    )


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
