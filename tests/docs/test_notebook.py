"""The sample notebook: executed in a kernel of its own, it says what stands in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.app.serving import SOURCES

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
WIDGET = "application/vnd.jupyter.widget-view+json"
_EXECUTE = "from nbclient.cli import main; main()"


def outputs(notebook: Any) -> Iterator[Any]:
    for cell in notebook["cells"]:
        yield from cell.get("outputs", ())


def texts(notebook: Any) -> Iterator[str]:
    """What its cells say in words."""
    for output in outputs(notebook):
        assert output["output_type"] != "error", output.get("evalue")
        yield "".join(output.get("text") or output["data"]["text/plain"])


def test_the_notebook_says_what_stands_in_it(tmp_path: Path) -> None:
    target = tmp_path / "executed.ipynb"
    environment = {**os.environ, "PYTHONPATH": SOURCES, "JUPYTER_PLATFORM_DIRS": "1"}
    command = [sys.executable, "-c", _EXECUTE, str(NOTEBOOK), f"--output={target}", "--timeout=120"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, timeout=150)
    written, executed = (
        json.loads(path.read_text(encoding="utf-8")) for path in (NOTEBOOK, target)
    )
    assert list(texts(executed)) == list(texts(written))
    shown = [one["data"] for one in outputs(executed) if WIDGET in one.get("data", {})]
    assert len(shown) == 3
    assert all("<script" not in data["text/html"] for data in shown)
    kept = [
        "".join(one["data"]["text/html"])
        for one in outputs(written)
        if "text/html" in one.get("data", {})
    ]
    for page in (*kept, *("".join(data["text/html"]) for data in shown)):
        assert "The graph as code" in page or 'alt="The graph"' in page, (
            "what GitHub shows has the graph, with dot and without"
        )
