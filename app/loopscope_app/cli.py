"""The ``loopscope`` command: the app without a subcommand, everything that needs no browser with
one.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from loopscope.errors import EngineError, MissingInput, in_one_line, neutral
from loopscope.version import VERSION
from loopscope_app.state.freed_memory import keep_freed_memory
from loopscope_app.state.memory_limit import bound_memory

COMMANDS = {
    "run": "run",
    "sweep": "sweep",
    "check": "check",
    "ops": "operations",
    "render": "render",
    "convert": "convert",
    "clock": "clock",
    "compare": "compare",
    "drift": "drift",
    "fate": "fate",
    "precision": "precision",
    "gradients": "gradients",
    "page": "page",
    "why": "why",
    "value": "value",
    "matrix": "matrix",
    "mcp": "mcp",
}
"""The module of each subcommand; imported when asked for, because each needs another part of the
engine.
"""

FINISHED, FAILED, REFUSED = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Return 0 if it finished, 1 if the run failed, 2 if the model or the inputs are invalid.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    bound_memory()
    keep_freed_memory()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(
            errors="backslashreplace"
        )  # a terminal without Unicode shows names that it has no letters for
    try:
        words = _install_operations(words)
        if words and words[0] in COMMANDS and not Path(words[0]).is_file():
            return _command(COMMANDS[words[0]], words[1:])
        return _command("serve", _launch_options(words))
    except MissingInput as error:
        return refuse(
            f"{error}; give them with --inputs: an .npz file, values such as number=27, or random"
        )
    except EngineError as error:
        return refuse(str(error))
    except BrokenPipeError:  # such as `| head`: the reader is gone
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
    """Installs the operations of packages and of every ``--ops FILE``; gives the words without
    those.
    """
    if words[:1] in (["-h"], ["--help"], ["--version"]):
        return words
    # Only here: what is asked for above needs no operation, and importing them takes longer than
    # all of its answer.
    from loopscope.ops.custom import install_file, install_packages

    install_packages()
    rest: list[str] = []
    position = 0
    while position < len(words):
        option, equals, file = words[position].partition("=")
        if option != "--ops":
            rest.append(words[position])
        elif "--server" in words:
            raise EngineError("--ops runs your own code and so does not go with --server")
        else:
            if not equals:
                position += 1
                file = words[position] if position < len(words) else ""
            if not file:
                raise EngineError(
                    "--ops takes a Python file that declares operations, and none is given"
                )
            install_file(file)
        position += 1
    return rest


def _command(module: str, argument: Sequence[str] | argparse.Namespace) -> int:
    code: int = importlib.import_module(f"loopscope_app.command.{module}").main(argument)
    if sys.stdout is not None:
        sys.stdout.flush()  # here, where a failure can still be reported
    return code


def refuse(message: str) -> int:
    """One sentence on standard error, and the exit code that goes with it."""
    told = in_one_line(message)
    print(f"loopscope: {neutral(told, len(told))}", file=sys.stderr)
    return REFUSED


def _launch_options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="loopscope",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        # --server must be written in full, because it opens the machine to others
        allow_abbrev=False,
        description="See, step through and explain neural-network graphs with loops and branches.",
        epilog="Without a browser:\n"
        "  loopscope run MODEL --inputs in.npz --outputs out.npz [--json]\n"
        "  loopscope sweep MODEL --inputs number=1..500 --out runs.parquet\n"
        "  loopscope why MODEL [ADDRESS] --inputs in.npz   why a loop ended or a branch was taken\n"
        "  loopscope value MODEL ADDRESS --inputs in.npz   any value of any iteration\n"
        "  loopscope matrix MODEL ADDRESS --inputs in.npz  all values of a loop over its "
        "iterations\n"
        "  loopscope mcp --folder FOLDER      answer agents over the Model Context Protocol\n"
        "  loopscope check MODEL [--json]     what is wrong with a model\n"
        "  loopscope ops [WORD] [--json]      which operations are known\n"
        "  loopscope render MODEL -o x.svg    draw a model\n"
        "  loopscope page MODEL --inputs in.npz -o page.html   a run as one HTML file\n"
        "  loopscope convert MODEL OUT.xml    write a model as OpenVINO IR (OUT.pb: for "
        "TensorFlow)\n"
        "  loopscope compare MODEL --inputs in.npz   where its own runtime first differs\n"
        "  loopscope drift MODEL --round '*=f16' --inputs in.npz   how errors grow over the "
        "iterations\n"
        "  loopscope precision MODEL --to int8 --inputs in.npz   what has to stay when the rest "
        "is rounded\n"
        "  loopscope gradients MODEL --of y --with-respect-to x   add gradients through loops "
        "and branches\n"
        "  loopscope clock MODEL --inputs in.npz     where the time of a run goes\n"
        "  loopscope fate MODEL               what its runtime makes of each loop and branch\n"
        "`loopscope COMMAND --help` says more.\n"
        "--ops FILE.py, with any of them, adds operations of your own.",
    )
    parser.add_argument(
        "model",
        nargs="?",
        default="",
        metavar="MODEL",
        help="an .xml, .onnx or other model file; without one the gallery opens",
    )
    parser.add_argument(
        "--inputs",
        default="",
        metavar="IN.npz",
        help="an array per input of MODEL, by name or position",
    )
    parser.add_argument(
        "--overlay",
        default="",
        metavar="FILE.json",
        help="a number or a text for nodes of MODEL, shown as colours",
    )
    parser.add_argument(
        "--sample",
        nargs="?",
        const="collatz",
        default="",
        metavar="NAME",
        help="open a sample first (default: collatz)",
    )
    parser.add_argument("--version", action="version", version=f"loopscope {VERSION}")
    parser.add_argument(
        "--port",
        type=_port,
        default=0,
        help="port of the server (default: the first free one from 8501)",
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    parser.add_argument(
        "--server",
        action="store_true",
        help=(
            "serve other machines: listens on all addresses, and users cannot open paths of "
            "this machine"
        ),
    )
    parser.add_argument(
        "--host-name",
        action="append",
        default=[],
        metavar="NAME",
        help=(
            "with --server: a name by which browsers reach it (repeat for more); addresses and "
            "this machine's own name are known"
        ),
    )
    return parser.parse_args(words)


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a port: expected a number from 1 to 65535"
        )
    return int(text)


if __name__ == "__main__":
    raise SystemExit(main())
