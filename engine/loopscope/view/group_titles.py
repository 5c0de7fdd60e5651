"""What groups are called: by their scope, as a block among its like, or by what most of their
operations are.
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
"""The end of a block's address: letter, number, last number where it is several, how many there
are.
"""
_TOLD = 3
"""Types of operations that a name tells."""
_PASSING = frozenset(
    {"Parameter", "Result", "Constant", "Const", "Identity", "Convert", "Cast"}
    | {"ConstantOfShape", "Reshape", "Squeeze", "Unsqueeze", "Transpose"}
)
"""Operations that say little of what is computed: named only where there is nothing else."""
_FIRST: Mapping[Family, int] = {"region": 0, "matrix": 1, "sequence": 1}


def group_title(address: str, nodes: Iterable[Node] = ()) -> tuple[str, str]:
    """What a group is, and its name. ``nodes``: what it holds, by which a stretch is called.

    >>> group_title("main/encoder%2Flayer%2F*"), group_title("main/Concat_7~shape")
    (('Scope', 'encoder/layer'), ('Shape arithmetic', 'Concat_7'))
    >>> group_title("main/%2Fencoder%2Flayers.0%2F*")
    ('Scope', 'encoder/layers.0')
    >>> group_title("main/*~A3.24~120..163"), group_title("main/*~A24~34..1066"), group_title("main/*~A1-32.1000~0..3200")
    (('Block A', '3 of 24'), ('Block A', '× 24'), ('Blocks A', '1 to 32 of 1000'))
    >>> from loopscope.ir.model import LayerId
    >>> group_title("main/*~0..2", [Node(LayerId(0), "x", "Add"), Node(LayerId(1), "y", "Add"), Node(LayerId(2), "z", "MatMul")])
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
        held = list(nodes)
        return mostly(held) or "Operations", f"× {len(held)}" if len(
            {node.type for node in held}
        ) == 1 else ""
    return "Scope", decode(label.partition("*")[0]).strip("/.")


def mostly(nodes: Iterable[Node]) -> str:
    """The types of operations that there are most of; control flow comes first, then matrix
    products, however few they are.
    """
    counted = Counter(node.type for node in nodes)
    ranked = sorted(
        counted,
        key=lambda type: (_FIRST.get(family_of(type), 2), type in _PASSING, -counted[type], type),
    )
    return ", ".join(neutral(type, 20) for type in ranked[:_TOLD])


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A group that is one of several calls of a function."""

    function: str
    number: int
    """From 1 on."""
    total: int


def named_scopes(model: Model) -> frozenset[str]:
    """The groups that a model says are scopes that its author has named (``graph.scope`` of
    ``loopscope.builder`` has it say so).
    """
    return frozenset(text for text in _told(model, "scopes").values() if is_group(text))


def function_calls(model: Model) -> Mapping[str, FunctionCall]:
    """The groups that a model says are calls of functions (``loopscope.builder.function`` has it
    say so), by address.
    """
    groups = {key: text for key, text in _told(model, "functions").items() if is_group(text)}
    names = _told(model, "function_names")
    # A file from before names were kept: each call is of a function of its own.
    of_function: dict[str, list[str]] = defaultdict(list)
    for key, group in groups.items():
        of_function[names.get(key, group_title(group)[1])].append(group)
    return {
        group: FunctionCall(function, number, len(calls))
        for function, calls in of_function.items()
        for number, group in enumerate(calls, 1)
    }


def _told(model: Model, section: str) -> Mapping[str, str]:
    """A section of what a model tells of how it was built; a file's may hold anything."""
    own = model.rt_info.get("loopscope")
    told = own.get(section) if isinstance(own, Mapping) else None
    return (
        {key: text for key, text in told.items() if isinstance(text, str)}
        if isinstance(told, Mapping)
        else {}
    )
