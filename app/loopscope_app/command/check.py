"""``loopscope check``: says what is wrong with a model, and what is odd about it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from loopscope.checks import BY_CODE, Report, Rule, Runtime, check, own_runtimes, text
from loopscope.errors import EngineError, shorten
from loopscope.ops import CATALOGUE
from loopscope_app.command import progress

FINE, SUSPICIOUS, BAD = 0, 1, 2


def main(words: Sequence[str]) -> int:
    """The exit code: 0 the model can be run, 2 it cannot; 1 when ``--strict`` is given and there
    are warnings. Notes never count.
    """
    options = _options(words)
    if options.explain is not None:
        print(_explained(options.explain.upper()))
        return FINE
    try:
        model = progress.read(options.model)
    except EngineError as error:
        if not options.json:
            raise
        print(json.dumps({"runnable": False, "message": str(error)}))
        return BAD
    runtimes = frozenset(map(Runtime, options.runtimes)) or own_runtimes(model)
    report = check(model, CATALOGUE).about(runtimes)
    if options.json:
        print(
            json.dumps({**text.data(report), "for": sorted(runtime.value for runtime in runtimes)})
        )
    else:
        shown = report if options.notes else report.without_habits()
        print(text.render_each(shown) if options.each else text.render(shown))
        left_out = len(report.diagnostics) - len(shown.diagnostics)
        if left_out == 1:
            print("\nA note of what exporters leave unused is not listed; --notes lists it.")
        elif left_out:
            print(
                f"\n{left_out} notes of what exporters leave unused are not listed; --notes lists them."
            )
    return _exit_code(report, strict=options.strict)


def _exit_code(report: Report, *, strict: bool) -> int:
    if not report.ok:
        return BAD
    return SUSPICIOUS if strict and report.warnings else FINE


def _explained(code: str) -> str:
    """One rule with its reasons; of no code, a line for each rule."""
    if not code:
        return "\n".join(
            f"{rule.code}  {rule.severity.value:7}  {text.documented(rule)[0]}{_meant_for(rule)}"
            for rule in BY_CODE.values()
        )
    if code not in BY_CODE:
        raise EngineError(
            f"there is no rule {shorten(code)!r}: `loopscope check --explain` lists those that there are"
        )
    return text.explanation(BY_CODE[code])


def _meant_for(rule: Rule) -> str:
    return (
        f" ({' and '.join(sorted(runtime.title for runtime in rule.runtimes))})"
        if rule.runtimes
        else ""
    )


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="loopscope check",
        description="Say what is wrong with a model, and what is odd about it.",
        epilog="An error keeps a model from running, a warning deserves a look, a note is harmless. "
        "The exit code is 0 when the model can be run, 2 when it cannot, and 1 when it can, but --strict is given and there are warnings.",
        allow_abbrev=False,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "model",
        metavar="MODEL",
        nargs="?",
        help="an OpenVINO .xml, an .onnx file, or a model that OpenVINO converts",
    )
    what.add_argument(
        "--explain",
        metavar="CODE",
        nargs="?",
        const="",
        help="say what a rule looks for and why, such as LS404; list all rules without CODE",
    )
    parser.add_argument(
        "--for",
        dest="runtimes",
        action="append",
        choices=[runtime.value for runtime in Runtime],
        default=[],
        help="include the findings about this runtime; may be given twice "
        "(otherwise: OpenVINO for IR, ONNX Runtime for ONNX, neither for models of other formats)",
    )
    parser.add_argument(
        "--each", action="store_true", help="list every place that a rule found, not only the first"
    )
    parser.add_argument(
        "--notes",
        action="store_true",
        help="list also the notes of what exporters leave unused, which does no harm",
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 when there are warnings")
    parser.add_argument("--json", action="store_true", help="print the diagnostics as JSON")
    return parser.parse_args(words)
