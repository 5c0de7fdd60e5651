"""Installation of the user's own operations in a worker process of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from loopscope.ops.custom import install_file


def install_texts(texts: Mapping[str, str]) -> None:
    """Install operations from the texts of their files, by file name without ``.py``."""
    with TemporaryDirectory() as folder:
        for stem, text in texts.items():
            file = Path(folder) / f"{stem}.py"
            file.write_text(text, encoding="utf-8")
            install_file(file, replace=True)
