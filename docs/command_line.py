"""Generator of the page about the command line, from what ``--help`` prints."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import redirect_stdout
from unittest.mock import patch

from loopscope_app import cli


def page() -> str:
    """Return Markdown: the help of the command, then of each subcommand."""
    sections = [
        f"## `{' '.join(('loopscope', *words))}`\n\n```text\n{_help(words)}```"
        for words in _commands()
    ]
    return "\n\n".join(["# Command line", *sections])


def _commands() -> Iterator[tuple[str, ...]]:
    yield ()
    yield from ((name,) for name in sorted(cli.COMMANDS))


def _help(words: tuple[str, ...]) -> str:
    printed = io.StringIO()
    with patch.dict(os.environ, COLUMNS="100"), redirect_stdout(printed):
        try:
            cli.main([*words, "--help"])
        except SystemExit as exit_request:
            if exit_request.code:
                raise ValueError(
                    f"loopscope {' '.join(words)} --help exits with {exit_request.code}"
                ) from None
    return printed.getvalue()
