"""``loopscope value``: print any value of a run in any iteration, or write it to an .npy file."""

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
from loopscope_app.command.address_question import Answer, address_parser, print_answer
from loopscope_app.command.answer_data import value_data, values
from loopscope_app.command.command_line import refuse_unwritable
from loopscope_app.command.report import value_line

_MAX_ELEMENTS = 1 << 62


def main(words: Sequence[str]) -> int:
    """Print or write the value and return the exit code: 0 there is such a value, 2 there is
    none.
    """
    options = _options(words)
    refuse_unwritable(options.output)
    return print_answer(
        options, lambda debugger, address: _value(debugger, address, options.output)
    )


def _value(debugger: loopscope.Debugger, address: str, path: str) -> Answer:
    value = debugger.value(address)
    bare, colon, output = address.partition(":")
    place = f"{debugger.resolve(bare) or bare}{colon}{output}"
    sentence = _write_value(value, path, address) if path else ""
    data = {"address": address, "place": place, **value_data(value, _MAX_ELEMENTS)}
    return ({**data, "file": path} if path else data), iter([sentence]) if path else _lines(
        value, place
    )


def _lines(value: Any, place: str) -> Iterator[str]:
    if not is_tensor(value):
        yield f"{place} = {value_line(value)}"
        return
    array = np.asarray(value)
    yield f"{place} = {type_name(array.dtype)} {list(array.shape)}"
    yield from np.array2string(values(array), threshold=max(1, array.size)).splitlines()


def _write_value(value: Any, path: str, address: str) -> str:
    """Write the value to a file and return a sentence about it."""
    if not is_tensor(value) or np.asarray(value).dtype.kind == "O":
        raise EngineError(
            f"{address} is not a tensor of numbers, and an .npy file can store nothing else: "
            "leave out -o, or use --json"
        )
    array = np.asarray(value)
    stored = array if array.dtype.isbuiltin == 1 and not array.dtype.names else values(array)
    if stored.dtype.isbuiltin != 1:
        stored = stored.astype(np.float64)
    with replaced_file(path) as file:
        np.save(file, stored, allow_pickle=False)
    conversion = (
        ""
        if stored.dtype == array.dtype
        else f", as {type_name(stored.dtype)}, which represents every {type_name(array.dtype)}"
    )
    return f"{path}: {type_name(array.dtype)} {list(array.shape)}{conversion}"


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = address_parser(
        "value",
        "Run a model and print one of its values: whole, as text, as JSON or in an .npy file.",
        "an operation, a Parameter or a Const, with iterations if it is inside a loop and with :1 "
        "for its second output (main/loop[2]/body/Split:1; without an iteration the last)",
    )
    parser.add_argument(
        "-o", dest="output", default="", metavar="X.npy", help="write the value to this file"
    )
    return parser.parse_args(words)
