"""Living pages: runs of samples that step in the browser, as ``loopscope page`` writes them.

A ``living`` block of a Markdown page contains such a command. The site shows the page that the
command writes in its place.
"""

from __future__ import annotations

import io
import os
import re
import shlex
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from html import escape
from multiprocessing import get_context
from pathlib import Path

from loopscope_app.command import page

FOLDER, ASSETS = "living", "living/assets"
_BLOCK = re.compile(r"^```living\n(loopscope page [^\n]*)\n```$", re.MULTILINE)


def block(*words: str) -> str:
    """Return a ``living`` block with a command.

    >>> block("sample_models/gcd/model.xml", "--inputs", "a=4 b=6")
    "```living\\nloopscope page sample_models/gcd/model.xml --inputs 'a=4 b=6'\\n```"
    """
    return f"```living\nloopscope page {shlex.join(words)}\n```"


def commands(markdown: str) -> list[str]:
    """Return the commands of all living blocks."""
    return [str(command) for command in _BLOCK.findall(markdown)]


def embedded(markdown: str, depth: int) -> str:
    """Return Markdown with a frame for every living block, for a page in a folder at ``depth``."""
    return _BLOCK.sub(lambda match: _frame(match[1], "../" * depth), markdown)


def _frame(command: str, root: str) -> str:
    address = f"{root}{FOLDER}/{file_name(command)}"
    return (
        f'<figure class="living"><iframe src="{address}" title="A run that can be stepped" '
        f'loading="lazy"></iframe><figcaption><a href="{address}">Open it alone</a> · written by '
        f"<code>{escape(command)}</code></figcaption></figure>"
    )


def file_name(command: str) -> str:
    """Return the name of the page that a command writes.

    >>> file_name("loopscope page sample_models/gcd/model.xml --inputs a.npz --at 3")
    'gcd-a-3.html'
    >>> file_name("loopscope page sample_models/delta_rule/kernel.loopscope")
    'delta_rule-kernel.html'
    """
    words = shlex.split(command)[2:]
    model = Path(words[0])
    names = [model.parent.name, *([] if model.stem == "model" else [model.stem])]
    parts = [*names, *(value.removesuffix(".npz") for value in words[2::2])]
    plain = (re.sub(r"\W+", "-", part.rpartition("/")[2], flags=re.ASCII) for part in parts)
    return f"{'-'.join(part.strip('-') for part in plain)}.html"


def write_all(written: Iterable[str], site: Path, root: Path) -> None:
    """Write the page of each command, by one process for each core.

    ``root`` contains the folder ``sample_models``. Raise ``ValueError`` if two commands write the
    same page.
    """
    by_name: dict[str, str] = {}
    for command in written:
        known = by_name.setdefault(file_name(command), command)
        if known != command:
            raise ValueError(f"{known!r} and {command!r} write the same page: change an option")
    (site / FOLDER).mkdir(parents=True, exist_ok=True)
    processes = min(len(by_name), os.cpu_count() or 1)
    if not processes:
        return
    jobs = [
        (command, site / FOLDER / name, site / ASSETS, root) for name, command in by_name.items()
    ]
    _write(*jobs.pop())  # the first page writes the shared files
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for future in [pool.submit(_write, *job) for job in jobs]:
            future.result()


def _write(command: str, target: Path, assets: Path, root: Path) -> None:
    words = [
        str(root / word) if word.startswith("sample_models/") else word
        for word in shlex.split(command)[2:]
    ]
    with redirect_stdout(io.StringIO()):
        page.main([*words, "--output", str(target), "--assets", str(assets)])
