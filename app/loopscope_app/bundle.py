"""ES modules joined into one, because a component is sent to the browser as a single module and
users need no Node.js.

What may be written is less than the language allows, so that joining stays a matter of whole lines:
named imports by relative paths, ``export`` before a declaration, one ``export default`` in the file
that is begun with. Anything else is refused when the app starts. Comments that have lines of their
own stay behind: pages that are sent carry the script.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

_IMPORT = re.compile(r'^import \{([\w\s,]+)\} from "(\.\.?/[\w./]+\.js)";\n', re.MULTILINE)
_DECLARED = re.compile(
    r"^(export )?(?:async )?(?:function\*?|class|const|let|var) (\w+)", re.MULTILINE
)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let)\b)", re.MULTILINE)
_DEFAULT = re.compile(r"^export default\b", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?://[^\n]*|/\*\*(?:[^*]|\*(?!/))*\*/)\n", re.MULTILINE)
_UNREAD = re.compile(r"^(?:import|export(?! default)|(?:const|let|var) [\[{])[^\n]*", re.MULTILINE)


def bundle(entry: Path) -> str:
    """The script of ``entry`` after those that it imports, each once, as one module.

    Raises ``ValueError`` when files import each other in a circle, import what is not exported,
    declare the same name, or are written in a way that is not understood here.
    """
    files = _in_order(entry)
    names = Counter(name for file in files for _, name in _DECLARED.findall(_text(file)))
    for name, count in names.items():
        if count > 1:
            raise ValueError(
                f"{count} files that {entry.name} consists of declare {name}: rename one of them"
            )
    return "\n".join(_body(file, is_entry=file == files[-1]) for file in files)


def _in_order(entry: Path) -> list[Path]:
    """The files that an entry consists of, imported ones first."""
    done: list[Path] = []
    open_: list[tuple[Path, list[Path]]] = [(entry, _imported(entry))]
    while open_:
        file, waiting = open_[-1]
        if not waiting:
            done.append(file)
            open_.pop()
            continue
        following = waiting.pop(0)
        if following in (path for path, _ in open_):
            raise ValueError(
                f"{file.name} imports {following.name}, which imports it again: move what both "
                "need to a third file"
            )
        if following not in done:
            open_.append((following, _imported(following)))
    return done


def _imported(file: Path) -> list[Path]:
    """The files that a file imports from, with the names checked that it takes from them."""
    files = []
    for names, written in _IMPORT.findall(_text(file)):
        source = written.removeprefix("./")
        path = Path(os.path.normpath(file.parent / source))
        if not path.is_file():
            raise ValueError(f"{file.name} imports {source}, which is no file")
        exported = {name for export, name in _DECLARED.findall(_text(path)) if export}
        for name in filter(None, (name.strip() for name in names.split(","))):
            if name not in exported:
                raise ValueError(
                    f"{file.name} imports {name} from {source}, which does not export it"
                )
        files.append(path)
    return files


def _body(file: Path, *, is_entry: bool) -> str:
    """A file without its imports and exports; the entry keeps its default export, which is the
    module's.
    """
    text = _EXPORT.sub("", _IMPORT.sub("", _text(file)))
    unread = _UNREAD.search(text)
    if unread:
        raise ValueError(
            f"{file.name}: only named imports of relative paths and exports of "
            "declarations are "
            f"joined, not {unread.group()!r}"
        )
    if len(_DEFAULT.findall(text)) != is_entry:
        raise ValueError(
            f"{file.name}: the file that is begun with exports a default function, and those "
            "that it imports do not"
        )
    return _COMMENT.sub("", text).strip() + "\n"


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")
