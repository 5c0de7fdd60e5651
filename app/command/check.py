"""``loopscope check``: says what is wrong with a model, and what is odd about it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import engine
from engine.check import text
from engine.check.check import check
from engine.check.rules import BY_CODE
from engine.errors import EngineError, shorten
from engine.ops.catalogue import CATALOGUE

FINE, BAD = 0, 2


def main(words: Sequence[str]) -> int:
    """The exit code: 0 the model can be run, 2 it cannot."""
    options = _options(words)
    if options.explain is not None:
        print(_explained(options.explain.upper()))
        return FINE
    try:
        model = engine.read_model(options.model)
    except EngineError as error:
        if not options.json:
            raise
        print(json.dumps({"runnable": False, "message": str(error)}))
        return BAD
    report = check(model, CATALOGUE)
    print(json.dumps(text.data(report)) if options.json else text.render(report))
    return FINE if report.ok else BAD


def _explained(code: str) -> str:
    """One rule with its reasons; of no code, a line for each rule."""
    if not code:
        return "\n".join(f"{rule.code}  {rule.severity.value:7}  {text.documented(rule)[0]}" for rule in BY_CODE.values())
    if code not in BY_CODE:
        raise EngineError(f"there is no rule {shorten(code)!r}: `loopscope check --explain` lists those that there are")
    return text.explanation(BY_CODE[code])


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="loopscope check",
        description="Say what is wrong with a model, and what is odd about it.",
        epilog="The exit code is 0 when the model can be run, 2 when it cannot.",
        allow_abbrev=False,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("model", metavar="MODEL", nargs="?", help="an OpenVINO .xml, an .onnx file, or a model that OpenVINO converts")
    what.add_argument(
        "--explain",
        metavar="CODE",
        nargs="?",
        const="",
        help="say what a rule looks for and why, such as LS404; list all rules without CODE",
    )
    parser.add_argument("--json", action="store_true", help="print the diagnostics as JSON")
    return parser.parse_args(words)
