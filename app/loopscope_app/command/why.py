"""``loopscope why``: explain why a loop ended or which branch an If took, with the proof.

Without an address, all loops and branches get a line each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import loopscope
from loopscope.errors import EngineError, InputError
from loopscope.explain import Verdict, executions, verdict
from loopscope_app.command.address_question import Answer, address_parser, print_answer
from loopscope_app.command.answer_data import verdict_data
from loopscope_app.command.report import value_line


def main(words: Sequence[str]) -> int:
    """Print the explanation and return the exit code: 0 there is an answer, 2 there is none."""
    options = _PARSER.parse_args(words)
    if not options.address and options.json:
        raise InputError(
            "--json explains a single loop or branch: expected an ADDRESS; "
            "`loopscope run MODEL --json` explains all"
        )
    return print_answer(options, _explain if options.address else _explain_all)


def _explain_all(debugger: loopscope.Debugger, _: str) -> Answer:
    return {}, _summary_lines(debugger)


def _summary_lines(debugger: loopscope.Debugger) -> Iterator[str]:
    """Yield a line for the last execution of each loop and If that ran, outer ones first."""
    ran, regions = 0, 0
    for region in executions(debugger):
        regions += 1
        if region.count:
            ran += 1
            address = region.address(region.count - 1)
            which = f" (the last of {region.count:,} times)" if region.count > 1 else ""
            yield f"{address}{which}: {_sentence(debugger, address)}"
    if not regions:
        yield "The model has no loops and no branches."
    elif ran < regions:
        yield f"{regions - ran:,} of {regions:,} loops and branches did not run."


def _sentence(debugger: loopscope.Debugger, address: str) -> str:
    try:
        return verdict(debugger, address).sentence
    except EngineError as error:
        return str(error)


def _explain(debugger: loopscope.Debugger, address: str) -> Answer:
    result = verdict(debugger, address)
    return verdict_data(debugger, result), _lines(debugger, result)


def _lines(debugger: loopscope.Debugger, result: Verdict) -> Iterator[str]:
    yield f"{result.address}: {result.sentence}"
    for fact in result.proof:
        indent = "  " * (fact.depth + 1)
        yield f"{indent}{fact.operation} {fact.address}: {fact.text}"
        for operand in fact.operands:
            yield f"{indent}  {operand} = {_value(debugger, operand)}"


def _value(debugger: loopscope.Debugger, address: str) -> str:
    try:
        return value_line(debugger.value(address))
    except EngineError as error:
        return str(error)


_PARSER = address_parser(
    "why",
    "Run a model and explain why one of its loops ended, or why an If took its branch: a sentence, "
    "and the values that prove it.",
    "a Loop, TensorIterator, Scan or If, with iterations if it is inside a loop "
    "(main/outer[2]/body/inner; without an iteration the last)",
    needed=False,
)
