"""``loopscope check``: says what is wrong with a model, and what is odd about it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import engine
from engine.check import text
from engine.check.check import check
from engine.check.rules import BY_CODE
from engine.errors import EngineError
from engine.ops.catalogue import CATALOGUE

FINE, BAD = 0, 2


def main(words: Sequence[str]) -> int:
    """The exit code: 0 the model can be run, 2 it cannot."""
    options = _options(words)
    if options.explain:
        print(text.explanation(BY_CODE[options.explain]))
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


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="loopscope check", description="Say what is wrong with a model, and what is odd about it.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("model", metavar="MODEL", nargs="?", help="an OpenVINO .xml, an .onnx file, or a model that OpenVINO converts")
    what.add_argument("--explain", metavar="CODE", choices=sorted(BY_CODE), help="say what a rule looks for, and why; such as LS404")
    parser.add_argument("--json", action="store_true", help="print the diagnostics as JSON")
    return parser.parse_args(words)
