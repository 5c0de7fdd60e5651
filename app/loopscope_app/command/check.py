"""``loopscope check``: report what is wrong with a model, and what is odd about it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from loopscope.checks import (
    ADVICE,
    BY_CODE,
    Report,
    Rule,
    Runtime,
    advice,
    check,
    own_runtimes,
    text,
)
from loopscope.errors import EngineError, shorten
from loopscope.ops import CATALOGUE
from loopscope.transform import REPAIRABLE
from loopscope_app.command import progress
from loopscope_app.command.command_line import (
    MODEL_HELP,
    add_json,
    command_parser,
    refuse_as_json,
)

FINE, SUSPICIOUS, BAD = 0, 1, 2


def main(words: Sequence[str]) -> int:
    """Check a model and return the exit code.

    0: the model can be run. 1: ``--strict`` and there are warnings. 2: the model cannot be run.
    Notes never count.
    """
    options = _options(words)
    if options.explain is not None:
        print(_explain_rule(options.explain.upper()))
        return FINE
    try:
        model = progress.read(options.model)
    except EngineError as error:
        return refuse_as_json(options, error, {"runnable": False, "message": str(error)})
    if options.fix:
        # Imported here, because a plain check needs no run.
        from loopscope_app.command.repair_report import write_repaired

        try:
            return write_repaired(options, model)
        except EngineError as error:
            return refuse_as_json(options, error, {"runnable": None, "message": str(error)})
    runtimes = frozenset(map(Runtime, options.runtimes)) or own_runtimes(model)
    report = check(model, CATALOGUE).about(runtimes)
    recommended = advice(model, CATALOGUE).about(runtimes)
    if options.json:
        answer = {
            **text.data(report),
            "advice": text.data(recommended)["diagnostics"],
            "for": sorted(runtime.value for runtime in runtimes),
        }
        print(json.dumps(answer))
    else:
        printed = report if options.notes else report.without_habits()
        print(text.render_each(printed) if options.each else text.render(printed))
        left_out = len(report.diagnostics) - len(printed.diagnostics)
        if left_out:
            notes = "1 note" if left_out == 1 else f"{left_out} notes"
            print(f"\nNot listed: {notes} about parts that exporters leave unused; use --notes.")
        _print_advice(recommended if options.notes else recommended.without_habits(), options)
    return _exit_code(report, strict=options.strict)


def _print_advice(report: Report, options: argparse.Namespace) -> None:
    if report.diagnostics:
        lines = text.render_each(report) if options.each else text.render(report)
        print(f"\nAdvice on speed and devices:{lines[lines.index(chr(10)) :]}")


def _exit_code(report: Report, *, strict: bool) -> int:
    if not report.ok:
        return BAD
    return SUSPICIOUS if strict and report.warnings else FINE


def _explain_rule(code: str) -> str:
    """Return one rule with its reasons; for an empty code, one line for each rule."""
    rules = {**BY_CODE, **{rule.code: rule for rule in ADVICE}}
    if not code:
        return "\n".join(
            f"{rule.code}  {rule.severity.value:7}  "
            f"{' '.join(text.documented(rule)[0].split())}{_runtimes_text(rule)}"
            for rule in rules.values()
        )
    if code not in rules:
        raise EngineError(
            f"there is no rule {shorten(code)!r}: `loopscope check --explain` lists all rules"
        )
    return text.explanation(rules[code])


def _runtimes_text(rule: Rule) -> str:
    return (
        f" ({' and '.join(sorted(runtime.title for runtime in rule.runtimes))})"
        if rule.runtimes
        else ""
    )


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "check",
        "Report what is wrong with a model, and what is odd about it.",
        "An error prevents a model from running, a warning deserves a look, a note is harmless. "
        "Exit code: 0 the model can be run, 1 the model can be run but --strict is given and there "
        "are warnings, 2 the model cannot be run.",
    )
    subject = parser.add_mutually_exclusive_group(required=True)
    subject.add_argument(
        "model",
        metavar="MODEL",
        nargs="?",
        help=MODEL_HELP,
    )
    subject.add_argument(
        "--explain",
        metavar="CODE",
        nargs="?",
        const="",
        help="explain a rule, such as LS404; without CODE list all rules",
    )
    parser.add_argument(
        "--for",
        dest="runtimes",
        action="append",
        choices=[runtime.value for runtime in Runtime],
        default=[],
        help="report findings about this runtime; may be given twice (default: OpenVINO for IR, "
        "ONNX Runtime for ONNX, neither for models of other formats)",
    )
    parser.add_argument(
        "--each",
        action="store_true",
        help="list every place that violates a rule, not only the first",
    )
    parser.add_argument(
        "--notes",
        action="store_true",
        help="also list notes about parts that exporters leave unused (harmless), and advice on "
        "single devices",
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 if there are warnings")
    add_repair_options(parser)
    add_json(parser, "print the diagnostics as JSON, or with --fix the repairs")
    options = parser.parse_args(words)
    if not options.fix and (options.only or options.inputs or options.source):
        parser.error("--only, --inputs and --source need --fix")
    return options


def add_repair_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a repair to ``check``."""
    parser.add_argument(
        "--fix",
        metavar="OUT",
        default="",
        help="repair LS906 and LS931, compare before and after in the model's runtime, and write "
        "the repaired model to OUT",
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=REPAIRABLE,
        default=[],
        help="with --fix: repair only this fault (a loop that is meant to be a do-while loop is "
        "no fault); may be given twice",
    )
    parser.add_argument(
        "--inputs",
        default="",
        metavar="INPUTS",
        help="with --fix: inputs of the comparison, as for `loopscope run` (default: generated)",
    )
    parser.add_argument(
        "--source",
        default="",
        metavar="PROGRAM",
        help="with --fix: also compare with the program that the model was converted from, as "
        "`loopscope compare --source` does",
    )
