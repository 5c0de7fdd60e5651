"""``loopscope why``: says why one loop ended, or why an If took its branch, with the values that prove it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import engine
from app.command.asking import Answer, answered, parser_of
from app.command.explained import verdict_data
from app.command.report import value_line
from engine.errors import EngineError
from engine.explain import Verdict, verdict


def main(words: Sequence[str]) -> int:
    """The exit code: 0 there is an answer, 2 there is none."""
    return answered(_PARSER.parse_args(words), _why)


def _why(debugger: engine.Debugger, address: str) -> Answer:
    found = verdict(debugger, address)
    return verdict_data(debugger, found), _lines(debugger, found)


def _lines(debugger: engine.Debugger, found: Verdict) -> Iterator[str]:
    yield f"{found.address}: {found.sentence}"
    for fact in found.proof:
        indent = "  " * (fact.depth + 1)
        yield f"{indent}{fact.operation} {fact.address}: {fact.text}"
        for operand in fact.operands:
            yield f"{indent}  {operand} = {_value(debugger, operand)}"


def _value(debugger: engine.Debugger, address: str) -> str:
    try:
        return value_line(debugger.value(address))
    except EngineError as error:
        return str(error)


_PARSER = parser_of(
    "why",
    "Run a model and say why one of its loops ended, or why an If took its branch: a sentence, and the values that prove it.",
    "a Loop, TensorIterator, Scan or If, with iterations where it lies in a loop (main/outer[2]/body/inner; the last one where left out)",
)
