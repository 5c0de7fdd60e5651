"""``loopscope why``: says why one loop ended, or why an If took its branch, with the values that
prove it; or of all, a line each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import loopscope
from loopscope.errors import EngineError, InputError
from loopscope.explain import Verdict, executions, verdict
from loopscope_app.command.asking import Answer, answered, parser_of
from loopscope_app.command.explained import verdict_data
from loopscope_app.command.report import value_line


def main(words: Sequence[str]) -> int:
    """The exit code: 0 there is an answer, 2 there is none."""
    options = _PARSER.parse_args(words)
    if not options.address and options.json:
        raise InputError(
            "--json explains one loop or branch: give its ADDRESS; `loopscope run MODEL --json` explains all"
        )
    return answered(options, _why if options.address else _all)


def _all(debugger: loopscope.Debugger, _: str) -> Answer:
    return {}, _line_of_each(debugger)


def _line_of_each(debugger: loopscope.Debugger) -> Iterator[str]:
    """The last execution of each loop and If that ran, an outer one before those inside it."""
    ran, regions = 0, 0
    for region in executions(debugger):
        regions += 1
        if region.count:
            ran += 1
            address = region.address(region.count - 1)
            told = f" (the last of {region.count:,} times)" if region.count > 1 else ""
            yield f"{address}{told}: {_sentence(debugger, address)}"
    if not regions:
        yield "The model has no loops and no branches."
    elif ran < regions:
        yield f"{regions - ran:,} of {regions:,} loops and branches did not run."


def _sentence(debugger: loopscope.Debugger, address: str) -> str:
    try:
        return verdict(debugger, address).sentence
    except EngineError as error:
        return str(error)


def _why(debugger: loopscope.Debugger, address: str) -> Answer:
    found = verdict(debugger, address)
    return verdict_data(debugger, found), _lines(debugger, found)


def _lines(debugger: loopscope.Debugger, found: Verdict) -> Iterator[str]:
    yield f"{found.address}: {found.sentence}"
    for fact in found.proof:
        indent = "  " * (fact.depth + 1)
        yield f"{indent}{fact.operation} {fact.address}: {fact.text}"
        for operand in fact.operands:
            yield f"{indent}  {operand} = {_value(debugger, operand)}"


def _value(debugger: loopscope.Debugger, address: str) -> str:
    try:
        return value_line(debugger.value(address))
    except EngineError as error:
        return str(error)


_PARSER = parser_of(
    "why",
    "Run a model and say why one of its loops ended, or why an If took its branch: a sentence, and the values that prove it.",
    "a Loop, TensorIterator, Scan or If, with iterations where it lies in a loop (main/outer[2]/body/inner; the last one where left out)",
    needed=False,
)
