"""What people may type into a debugger: expressions, addresses and words, grown from the
language's own pieces and then damaged.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress

import loopscope
from loopscope.debug.expression import parse
from loopscope.errors import EngineError
from loopscope.explain.ask import ask
from loopscope.explain.export import computed
from loopscope.explain.provenance import provenance
from loopscope.explain.verdict import verdict
from loopscope.view.search import search
from loopscope_app.describe.answers import read_number
from loopscope_app.describe.input_parsing import parse_scalar, parse_shape
from loopscope_app.describe.signatures import signatures

NAMES = (
    "i",
    "iteration",
    "x",
    "_",
    "__class__",
    "_quoted_0",
    "_quoted_99999999999999999999",
    "True",
    "None",
    "lambda",
    "é",
    "x@-1",
    "in",
)
FUNCTIONS = (
    "abs",
    "all",
    "any",
    "argmax",
    "exp",
    "log",
    "max",
    "maximum",
    "mean",
    "norm",
    "round",
    "shape",
    "size",
    "std",
    "sum",
    "eval",
    "open",
)
NUMBERS = (
    "0",
    "1",
    "-1",
    "2",
    "3.5",
    "1e308",
    "1e999",
    "9223372036854775807",
    "9223372036854775808",
    "9" * 400,
    "0x10",
    "1j",
    "1_0",
    "07",
)
SIGNS = (
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "@",
    "&",
    "|",
    "^",
    "<<",
    "==",
    "!=",
    "<",
    "<=",
    "and",
    "or",
    "is",
    "in",
    ":=",
)
PIECES = (
    "",
    " ",
    "(",
    ")",
    "[",
    "]",
    "`",
    "``",
    "'",
    '"',
    "\\",
    "\0",
    "\n",
    "#",
    ":",
    "::",
    ",",
    "*",
    "...",
    "~",
    "%41",
    "%",
    "/",
    "\u202e",
    "\ud800",
    "🙂",
)
DEEP = (
    "(" * 450,
    "[" * 450,
    "-" * 490,
    "not " * 120,
    "x[" * 200 + "0" + "]" * 200,
    "**".join("9" * 160),
    "1" * 499,
    "x." + "T." * 240 + "T",
)


def expression(dice: random.Random, names: Sequence[str], depth: int = 3) -> str:
    """A well-formed expression, mostly of the language."""
    if depth == 0 or dice.random() < 0.2:
        return _name(dice, names) if dice.random() < 0.6 else dice.choice(NUMBERS)
    inner = [expression(dice, names, depth - 1) for _ in range(3)]
    match dice.randrange(10):
        case 0 | 1 | 2:
            return f"({inner[0]} {dice.choice(SIGNS)} {inner[1]})"
        case 3 | 4:
            return (
                f"{dice.choice(FUNCTIONS)}({', '.join(inner[: dice.choice((1, 1, 1, 2, 3, 0))])})"
            )
        case 5:
            return f"{inner[0]}[{inner[1]}{dice.choice(('', ':', f':{inner[2]}', f'::{inner[2]}', f', {inner[2]}'))}]"
        case 6:
            return f"{_name(dice, names)}[i{dice.choice(('', '-1', '+1', ' - 9', ' + 10000000000', ' - 9223372036854775807'))}]"
        case 7:
            return f"{dice.choice(('-', 'not ', '+', '~', 'await ', '*'))}{inner[0]}"
        case 8:
            return f"{inner[0]}.{dice.choice(('T', 'shape', 'ndim', 'size', 'dtype', 'real', '__class__', 'tofile'))}"
        case _:
            return dice.choice(
                (
                    f"{inner[0]} if {inner[1]} else {inner[2]}",
                    f"({inner[0]}, {inner[1]})",
                    f"[{inner[0]}]",
                    f"{{{inner[0]}}}",
                )
            )


def _name(dice: random.Random, names: Sequence[str]) -> str:
    if not names or dice.random() < 0.15:
        return dice.choice(NAMES)
    name = dice.choice(names)
    return name if name.isidentifier() and dice.random() < 0.9 else f"`{name}`"


def address(dice: random.Random, addresses: Sequence[str]) -> str:
    """The address of something, or nearly."""
    text = dice.choice(addresses) if addresses else "main"
    match dice.randrange(5):
        case 0:
            return text
        case 1:
            return f"{text}:{dice.choice(('0', '1', '7', '-1', '99999999999', 'x'))}"
        case 2:
            inside = dice.choice(("*", "0", "1", "-1", "99999999999999999", "9" * 30, "x", ""))
            return (
                text.replace("/body", f"[{inside}]/body")
                if "/body" in text
                else f"{text}[{inside}]"
            )
        case 3:
            parts = text.split("/")
            dice.shuffle(parts)
            return "/".join(parts[: dice.randrange(1, len(parts) + 1)])
        case _:
            return damaged(dice, text)


def damaged(dice: random.Random, text: str) -> str:
    """The text with a piece in it that does not belong there."""
    at = dice.randrange(len(text) + 1)
    return (
        text[:at]
        + dice.choice(PIECES) * dice.choice((1, 1, 2, 300))
        + text[at + dice.choice((0, 0, 1, 3)) :]
    )


def type_into(debugger: loopscope.Debugger, dice: random.Random) -> None:
    """A dozen entries into the fields of a debugger; whatever is raised is no ``EngineError``."""
    model = debugger.model
    addresses = [one for one, _ in zip(computed(debugger), range(200), strict=False)]
    names = [one.rpartition("/")[2] for one in addresses]
    loops = [record.address for record in debugger.control_flow[:50] if record.iterations]
    for _ in range(12):
        text = dice.choice(DEEP) if dice.random() < 0.05 else expression(dice, names)
        text = damaged(dice, text) if dice.random() < 0.3 else text
        place = address(dice, addresses)
        match dice.randrange(8):
            case 0:
                with suppress(EngineError):
                    parse(text)
            case 1:
                with suppress(EngineError):
                    debugger.watches.add(text)
                debugger.watches.values()
            case 2:
                with suppress(EngineError):
                    debugger.breakpoints.add(place, condition=text if dice.random() < 0.7 else "")
            case 3 if loops:
                with suppress(EngineError):
                    ask(debugger, dice.choice(loops), text, limit=50)
            case 4:
                for use in (debugger.value, debugger.seek, debugger.run_to):
                    with suppress(EngineError):
                        use(place)
            case 5:
                for explain in (verdict, provenance):
                    with suppress(EngineError):
                        explain(debugger, place)
            case 6:
                search(model, damaged(dice, place))
            case _:
                read_number(text)
                for one in list(signatures(model).values())[:3]:
                    for read in (parse_scalar, parse_shape):
                        with suppress(EngineError):
                            read(dice.choice((text, dice.choice(NUMBERS))), one)
    debugger.seek(0)
    debugger.run()
