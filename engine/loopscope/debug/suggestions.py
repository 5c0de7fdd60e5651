"""Lookup of names in a graph (nodes, bodies, values), and suggestions of similar names."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from weakref import WeakKeyDictionary

from loopscope.errors import ExpressionError
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import ABSENT, Program, Region
from loopscope.ir.address import ROOT, decode, encode
from loopscope.ir.address_search import ambiguous, ending, split_output, without_iterations
from loopscope.ir.readable import as_written, static_words

_LABELS_BY_ENDING: WeakKeyDictionary[Program, dict[str, str | None]] = WeakKeyDictionary()
"""Results of searches by the end of a name, cached because conditions are evaluated at every
step.
"""


def region_number(program: Program, label: str) -> int | None:
    """Return the number of the instruction of a node with bodies; None for an unknown node."""
    return next(
        (number for number in program.regions if program.instructions[number].label == label), None
    )


def body_of(region: Region, name: str) -> Program | None:
    """Return the nested graph of that name (``body``, ``then``, ``else``); None for an unknown
    name.
    """
    return next((program for program in region.programs if program.branch_name == name), None)


def slot_of(program: Program, name: str) -> Slot | None:
    """Return the slot of the value that a name in a condition refers to; None for an unknown
    name.
    """
    label, _, output = (label_of(program, name) or "").partition(":")
    slot = (
        program.slots.get((program.layer_of_label[label], int(output or 0)), ABSENT)
        if label
        else ABSENT
    )
    return None if slot == ABSENT else slot


def label_of(program: Program, name: str) -> str | None:
    """Return the label of a node in addresses, with ``:1`` after it for another output than the
    first; None for an unknown node.

    ``name`` is the node's name, as addresses or screens write it, or an end of it (``Gather_0`` of
    ``attn/Gather_0``) if no enclosing graph has a node of exactly that name. Raises
    ``ExpressionError`` if several nodes of the graph have that end.
    """
    exact = _find_exactly(program, name)
    if exact is not None or name.startswith(f"{ROOT}/"):
        return exact
    cached = _LABELS_BY_ENDING.setdefault(program, {})
    if name not in cached:
        cached[name] = (
            None
            if any(_find_exactly(outer, name) for outer in program.around())
            else _find_by_ending(program, name)
        )
    return cached[name]


def _find_by_ending(program: Program, name: str) -> str | None:
    text, output = split_output(as_written(name.strip()))
    if without_iterations(text) != text:
        return None
    prefix = f"{program.address}/"
    ends = ending(
        [prefix + label for label in program.layer_of_label], text, static_words(name.strip())
    )
    if len(ends) > 1:
        raise ExpressionError(ambiguous(name, ends))
    return "".join(ends).removeprefix(prefix) + output if ends else None


def _find_exactly(program: Program, name: str) -> str | None:
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
    """Return the name of each slot in addresses: its node, with ``:1`` after it for another output
    than the first.
    """
    labels = {layer: label for label, layer in program.layer_of_label.items()}
    return {
        slot: labels[layer] + (f":{output}" if output else "")
        for (layer, output), slot in program.slots.items()
        if layer not in program.results
    }


def near(label: str, names: list[str]) -> str:
    """List names that are similar to an unknown name, for an error message."""
    matches = get_close_matches(label[:60], names[:5000], 3, 0.4) or names[:3]
    return ", ".join(repr(decode(name)[:60]) for name in matches) or "no operations"
