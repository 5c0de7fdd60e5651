"""The ``loopscope`` command: the app without a subcommand, and one subcommand per task."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import re
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from loopscope.errors import EngineError, MissingInput, in_one_line, neutral
from loopscope.version import VERSION
from loopscope_app.state.process_memory import bound_memory, keep_freed_memory

COMMANDS = {
    "run": "run",
    "sweep": "sweep",
    "check": "check",
    "ops": "operations",
    "render": "render",
    "convert": "convert",
    "cut": "cut",
    "reproduce": "reproduce",
    "specialise": "specialise",
    "clock": "clock",
    "compare": "compare",
    "drift": "drift",
    "fate": "fate",
    "precision": "precision",
    "gradients": "gradients",
    "page": "page",
    "trace": "trace",
    "why": "why",
    "value": "value",
    "matrix": "matrix",
    "test": "loop_tests.command",
    "mcp": "mcp",
}
"""Module of each subcommand. It is imported on demand, because each needs another part of the
engine.
"""

FINISHED, REFUSED = 0, 2
_RUNTIMES = {
    "openvino": "OpenVINO",
    "onnxruntime": "ONNX Runtime",
    "torch": "PyTorch",
    "tensorflow": "TensorFlow",
}
"""Titles of the runtimes that a model can be compared with, by package."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0: it finished. 1: the run failed. 2: the model or the inputs are bad. 130: stopped by Ctrl+C.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    bound_memory()
    keep_freed_memory()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal without Unicode shows escapes in names.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        words = _install_operations(words)
        if words and words[0] in COMMANDS and not Path(words[0]).is_file():
            return _command(COMMANDS[words[0]], words[1:])
        return _command("serve", _launch_options(words))
    except MissingInput as error:
        return refuse(
            f"{error}; expected --inputs with an .npz file, values such as number=27, or random"
        )
    except EngineError as error:
        return refuse(str(error))
    except BrokenPipeError:  # for example `| head`, which stops reading
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINISHED
    except OSError as error:
        return refuse(
            f"{error.filename}: {error.strerror}"
            if error.filename
            else error.strerror or str(error)
        )
    except MemoryError:
        return refuse("there is not enough memory for this model")
    except KeyboardInterrupt as stopped:
        refuse(str(stopped) or "stopped")
        return 130


def _install_operations(words: list[str]) -> list[str]:
    """Install the operations of packages and of every ``--ops FILE``; return the other words."""
    if words[:1] in (["-h"], ["--help"], ["--version"]):
        return words
    # Imported here because importing operations takes longer than printing the help.
    from loopscope.ops.custom import install_file, install_packages

    install_packages()
    rest: list[str] = []
    position = 0
    while position < len(words):
        option, equals, file = words[position].partition("=")
        if option != "--ops":
            rest.append(words[position])
        elif "--server" in words:
            raise EngineError("--ops runs your own code and cannot be combined with --server")
        else:
            if not equals:
                position += 1
                file = words[position] if position < len(words) else ""
            if not file:
                raise EngineError("--ops: expected a Python file that declares operations")
            install_file(file)
        position += 1
    return rest


def _command(module: str, argument: Sequence[str] | argparse.Namespace) -> int:
    code: int = importlib.import_module(f"loopscope_app.command.{module}").main(argument)
    if sys.stdout is not None:
        sys.stdout.flush()  # flushed here, where a failure can still be reported
    return code


def refuse(message: str) -> int:
    """Print one sentence on standard error, and return the exit code for bad input."""
    sentence = in_one_line(message)
    print(f"loopscope: {neutral(sentence, len(sentence))}", file=sys.stderr)
    return REFUSED


_EPILOG = """commands that need no browser:
 look
  run MODEL --inputs in.npz        run a model; print its outputs and control flow
  value MODEL ADDRESS              print any value of any iteration
  matrix MODEL ADDRESS             print all values of a loop over its iterations
  render MODEL -o x.svg            draw a model
  ops [WORD]                       list the operations that can be run
 explain
  why MODEL [ADDRESS]              explain why a loop ended or a branch was taken
  check MODEL [--fix OUT]          report what is wrong with a model, and repair two faults
  clock MODEL                      report where the time of a run goes
  fate MODEL                       report what the runtime makes of each loop and branch
 compare
  compare MODEL                    find the first difference from the model's own runtime
  drift MODEL MODEL2               report how errors grow over the iterations
  precision MODEL --to int8        find the values that must not be rounded
  sweep MODEL --inputs n=1..500    run a model on many inputs: a table, one row per input
  test [loops.toml]                verify expected iteration counts, branches and drift
 change
  gradients MODEL --of y --with-respect-to x
                                   add gradients through loops and branches
  convert MODEL OUT.xml            write a model as OpenVINO IR (OUT.onnx: ONNX, OUT.pb:
                                   a TensorFlow graph)
  specialise MODEL --set sr=16000 -o OUT.onnx
                                   fix inputs and remove the Ifs and loops they decide
  cut MODEL ADDRESS -o FOLDER      write a part with its recorded inputs and outputs
  reproduce MODEL --differs onnxruntime -o FOLDER
                                   write the smallest model that shows a fault
 serve
  trace import DIR --pattern ... -o x.loopscope
                                   make a trace of arrays that a program dumped
  page MODEL -o page.html          write a run as one HTML file
  mcp --folder FOLDER              answer agents over the Model Context Protocol

`loopscope COMMAND --help` lists the options of a command.
--ops FILE.py, with any command, adds operations of your own."""


def _launch_options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="loopscope",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        # --server must be written in full, because it opens the machine to others
        allow_abbrev=False,
        description="See, step through and explain neural-network graphs with loops and branches.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "model",
        nargs="?",
        default="",
        metavar="MODEL",
        help="an .xml, .onnx or other model file, or its https:// address (default: open the "
        "gallery)",
    )
    parser.add_argument(
        "--inputs",
        default="",
        metavar="IN.npz",
        help="file with an array per input of MODEL, by name or position",
    )
    parser.add_argument(
        "--overlay",
        default="",
        metavar="FILE.json",
        help="color the nodes of MODEL by a number or a text from this file",
    )
    parser.add_argument(
        "--sample",
        nargs="?",
        const="collatz",
        default="",
        metavar="NAME",
        help="open a sample first (default: collatz)",
    )
    parser.add_argument("--version", action="version", version=_versions())
    parser.add_argument(
        "--port",
        type=_port,
        default=0,
        help="port of the server (default: the first free one from 8501)",
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    parser.add_argument(
        "--no-agreement",
        action="store_true",
        help="do not compare an opened model with its runtime in the background",
    )
    parser.add_argument(
        "--watch",
        action="store_true",
        help="open MODEL again when its file changes, at the same moment and view",
    )
    parser.add_argument(
        "--server",
        action="store_true",
        help="serve other machines: listen on all addresses; users cannot open paths of this "
        "machine",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="HOST",
        help="with a model on the web: a host of a private network that may be asked; repeat for "
        "more hosts",
    )
    parser.add_argument(
        "--frame-origin",
        action="append",
        default=[],
        type=_frame_origin,
        metavar="ORIGIN",
        help="an editor or a page that may show the app in a frame, such as vscode-webview:; "
        "repeat for more origins",
    )
    parser.add_argument(
        "--host-name",
        action="append",
        default=[],
        metavar="NAME",
        help="with --server: a name by which browsers reach this server, besides its addresses and "
        "the name of this machine; repeat for more names",
    )
    return parser.parse_args(words)


def _versions() -> str:
    """Return the version of Loopscope, and those of the runtimes that are installed."""
    lines = [f"loopscope {VERSION}"]
    for package, title in _RUNTIMES.items():
        try:
            lines.append(f"{title} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return "\n".join(lines)


def _frame_origin(text: str) -> str:
    """Return an exact origin, or the scheme of an editor's own pages."""
    if not re.fullmatch(r"vscode-(webview|file):|https?://[a-z0-9.-]+(:[0-9]{1,5})?", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an origin: expected https://HOST, https://HOST:PORT, vscode-webview: "
            "or vscode-file:"
        )
    return text


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a port: expected a number from 1 to 65535"
        )
    return int(text)


if __name__ == "__main__":
    raise SystemExit(main())
