"""What a name means in a graph: its nodes, their bodies and values; and which names are much
like one that means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from weakref import WeakKeyDictionary

from loopscope.errors import ExpressionError
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import ABSENT, Program, Region
from loopscope.ir.address import ROOT, decode, encode
from loopscope.ir.address_suffix import ambiguous, ending, split_output, without_iterations
from loopscope.ir.readable import as_written, static_words

_ends: WeakKeyDictionary[Program, dict[str, str | None]] = WeakKeyDictionary()
"""What was looked for by an end: conditions ask at every step."""


def region_number(program: Program, label: str) -> int | None:
    """The number of the instruction of a node with bodies; None for no such node."""
    return next(
        (number for number in program.regions if program.instructions[number].label == label), None
    )


def body_of(region: Region, name: str) -> Program | None:
    """The nested graph of that name (``body``, ``then``, ``else``); None when there is none."""
    return next((one for one in region.programs if one.branch_name == name), None)


def slot_of(program: Program, name: str) -> Slot | None:
    """The slot of the value that a condition means by a name in a graph; None where it has none."""
    label, _, output = (label_of(program, name) or "").partition(":")
    slot = (
        program.slots.get((program.layer_of_label[label], int(output or 0)), ABSENT)
        if label
        else ABSENT
    )
    return None if slot == ABSENT else slot


def label_of(program: Program, name: str) -> str | None:
    """A node as addresses write it, with ``:1`` after it for another output than the first; None
    for no node.

    ``name`` is its name, that as addresses or screens write it, or an end of it (``Gather_0`` of
    ``attn/Gather_0``), when no graph around has a node of just that name. ``ExpressionError`` when
    several nodes of the graph have that end.
    """
    found = _exactly(program, name)
    if found is not None or name.startswith(f"{ROOT}/"):
        return found
    kept = _ends.setdefault(program, {})
    if name not in kept:
        kept[name] = (
            None
            if any(_exactly(outer, name) for outer in program.around())
            else _by_its_end(program, name)
        )
    return kept[name]


def _by_its_end(program: Program, name: str) -> str | None:
    text, output = split_output(as_written(name.strip()))
    if without_iterations(text) != text:
        return None
    around = f"{program.address}/"
    ends = ending(
        [around + label for label in program.layer_of_label], text, static_words(name.strip())
    )
    if len(ends) > 1:
        raise ExpressionError(ambiguous(name, ends))
    return "".join(ends).removeprefix(around) + output if ends else None


def _exactly(program: Program, name: str) -> str | None:
    if name in program.layer_of_label:
        return name
    if name.isidentifier():
        return None
    if (label := encode(name)) in program.layer_of_label:
        return label
    stem, _, output = name.rpartition(":")
    label = stem if stem in program.layer_of_label else encode(stem)
    return (
        f"{label}:{output}"
        if output.isdecimal() and len(output) < 10 and label in program.layer_of_label
        else None
    )


def value_names(program: Program) -> Mapping[Slot, str]:
    """What addresses call the value of each slot: its node, with ``:1`` after it for another
    output than the first.
    """
    labels = {layer: label for label, layer in program.layer_of_label.items()}
    return {
        slot: labels[layer] + (f":{output}" if output else "")
        for (layer, output), slot in program.slots.items()
        if layer not in program.results
    }


def near(label: str, names: list[str]) -> str:
    """Names that are much like one that is not there, for a sentence."""
    found = get_close_matches(label[:60], names[:5000], 3, 0.4) or names[:3]
    return ", ".join(repr(decode(name)[:60]) for name in found) or "no operations"
