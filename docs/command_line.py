"""The page of the command line, from what its own ``--help`` prints."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import redirect_stdout
from unittest.mock import patch

from loopscope_app import cli

__all__: list[str] = []


def page() -> str:
    """Markdown: the command, and each of its subcommands."""
    parts = [
        "# The command line",
        *(
            f"## `{' '.join(('loopscope', *words))}`\n\n```text\n{_help(words)}```"
            for words in _commands()
        ),
    ]
    return "\n\n".join(parts)


def _commands() -> Iterator[tuple[str, ...]]:
    yield ()
    yield from ((name,) for name in sorted(cli.COMMANDS))


def _help(words: tuple[str, ...]) -> str:
    printed = io.StringIO()
    with patch.dict(os.environ, COLUMNS="110"), redirect_stdout(printed):
        try:
            cli.main([*words, "--help"])
        except SystemExit as ended:
            if ended.code:
                raise ValueError(
                    f"loopscope {' '.join(words)} --help exits with {ended.code}"
                ) from None
    return printed.getvalue()


__doc__ = page()
