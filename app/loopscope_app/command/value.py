"""``loopscope value``: says any value of a run, of any iteration, or writes it to an .npy file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import loopscope
from loopscope.errors import EngineError
from loopscope.ir import type_name
from loopscope.ops import is_tensor
from loopscope.replaced_file import replaced_file
from loopscope_app.command.asking import Answer, answered, parser_of
from loopscope_app.command.output_files import refuse_unwritable
from loopscope_app.command.report import value_line
from loopscope_app.command.value_data import value_data, values

_ALL = 1 << 62


def main(words: Sequence[str]) -> int:
    """The exit code: 0 there is such a value, 2 there is none."""
    options = _options(words)
    refuse_unwritable(options.output)
    return answered(options, lambda debugger, address: _value(debugger, address, options.output))


def _value(debugger: loopscope.Debugger, address: str, path: str) -> Answer:
    value = debugger.value(address)
    bare, colon, output = address.partition(":")
    place = f"{debugger.resolve(bare) or bare}{colon}{output}"
    written = _written(value, path, address) if path else ""
    data = {"address": address, "place": place, **value_data(value, _ALL)}
    return ({**data, "file": path} if path else data), iter([written]) if path else _lines(
        value, place
    )


def _lines(value: Any, place: str) -> Iterator[str]:
    if not is_tensor(value):
        yield f"{place} = {value_line(value)}"
        return
    array = np.asarray(value)
    yield f"{place} = {type_name(array.dtype)} {list(array.shape)}"
    yield from np.array2string(values(array), threshold=max(1, array.size)).splitlines()


def _written(value: Any, path: str, address: str) -> str:
    """Writes the value; what was written, in a sentence."""
    if not is_tensor(value) or np.asarray(value).dtype.kind == "O":
        raise EngineError(
            f"{address} is not a tensor of numbers, which is all that an .npy file can hold: leave out -o, or ask with --json"
        )
    array = np.asarray(value)
    plain = array if array.dtype.isbuiltin == 1 and not array.dtype.names else values(array)
    if plain.dtype.isbuiltin != 1:
        plain = plain.astype(np.float64)
    with replaced_file(path) as file:
        np.save(file, plain, allow_pickle=False)
    held = (
        ""
        if plain.dtype == array.dtype
        else f", as {type_name(plain.dtype)}, which holds every {type_name(array.dtype)}"
    )
    return f"{path}: {type_name(array.dtype)} {list(array.shape)}{held}"


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = parser_of(
        "value",
        "Run a model and say one of its values: whole, as text, as JSON or in an .npy file.",
        "an operation, a Parameter or a Const, with iterations where it lies in a loop and :1 for another output than the first "
        "(main/loop[2]/body/Split:1; the last iteration where left out)",
    )
    parser.add_argument(
        "-o", dest="output", default="", metavar="X.npy", help="write the value to this file"
    )
    return parser.parse_args(words)
