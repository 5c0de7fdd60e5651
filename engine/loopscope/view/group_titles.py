"""Titles of groups: by scope, by position among similar blocks, or by their most frequent
operations.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from loopscope.errors import neutral
from loopscope.ir.address import decode
from loopscope.ir.model import Model, Node
from loopscope.view.grouping import CHAIN, OUTER, is_group
from loopscope.view.operation_families import Family, family_of
from loopscope.view.partition import has_span

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

    ``loopscope.builder.function`` writes the declarations.
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
