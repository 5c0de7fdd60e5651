"""Opens the app on a model that Python holds."""

from __future__ import annotations

import atexit
import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loopscope.debug.inputs import Inputs, bind
from loopscope.errors import EngineError
from loopscope.ir.model import Model, expect_model
from loopscope.ops.stored import packed, write
from loopscope.plugins import COMMAND, plugin
from loopscope.write import write_model

if TYPE_CHECKING:
    from loopscope.view.node_data import Given

_COMMAND = "loopscope"
"""Name of the console script that starts the app."""
_PATIENCE = 5.0
"""Seconds that the app gets to close."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RunningApp:
    """The app on a model: where it is, and how to close it."""

    url: str
    process: subprocess.Popen[bytes]
    folder: tempfile.TemporaryDirectory[str]

    def __repr__(self) -> str:
        return f"<Loopscope at {self.url}{'' if self.process.poll() is None else ', closed'}>"

    def wait(self) -> None:
        """Until the app is closed, with Ctrl+C for example."""
        try:
            self.process.wait()
        except KeyboardInterrupt:
            pass
        finally:
            self.stop()

    def stop(self) -> None:
        """Closes the app, and removes the files that it was started on."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.folder.cleanup()
        atexit.unregister(self.stop)

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" target="_blank">Loopscope is at {self.url}</a>'


def show(
    model: Model,
    inputs: Inputs = None,
    *,
    overlay: Given | None = None,
    wait: bool | None = None,
    browser: bool = True,
) -> RunningApp:
    """Starts the app on a model, with these inputs chosen, and opens it in the browser.

    ``inputs`` as in ``loopscope.run``; without any the app makes some up. ``overlay``: a number or
    a text by address or name of a node, or a JSON file of them, shown as colours. ``wait``: until
    the app is closed (default: in a script, not at a prompt or in a notebook; what it gives back
    closes it). ``InputError`` when the inputs do not fit, ``WriteError`` for an ONNX model that was
    not read from a file, ``ReadError`` for an overlay of nothing in the model, ``EngineError`` when
    the app is not installed.
    """
    expect_model(model, "loopscope.show")
    command = plugin(COMMAND, _COMMAND)
    if command is None:
        raise EngineError("the app is not there: install loopscope as a whole")
    folder = tempfile.TemporaryDirectory(prefix="loopscope-")
    try:
        words = [
            *_words(model, inputs, Path(folder.name)),
            *_overlay_words(model, overlay, Path(folder.name)),
        ]
        port = _free_port()
        options = ["--port", str(port), *([] if browser else ["--no-browser"])]
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", command.module, *words, *options], env=_environment()
        )
    except BaseException:
        folder.cleanup()
        raise
    shown = RunningApp(f"http://localhost:{port}", process, folder)
    atexit.register(shown.stop)
    if not _is_interactive() if wait is None else wait:
        shown.wait()
    return shown


def _words(model: Model, inputs: Inputs, folder: Path) -> list[str]:
    """What the command opens: files in the folder, or the file that an ONNX model came from."""
    words = [model.file]
    if model.dialect == "openvino" or not Path(model.file).is_file():
        name = "".join(
            letter if letter.isalnum() or letter in " -_." else "_" for letter in model.name
        )[:60].strip(" .")
        target = folder / f"{name or 'model'}.xml"
        write_model(model, target)
        words = [str(target)]
    if inputs is not None and model.inputs:
        arrays = bind(model, inputs)
        write(
            folder / "inputs.npz",
            packed({str(position): arrays[one.layer] for position, one in enumerate(model.inputs)}),
        )
        words += ["--inputs", str(folder / "inputs.npz")]
    return words


def _overlay_words(model: Model, overlay: Given | None, folder: Path) -> list[str]:
    """The option for what others say of the nodes, which is read before the app is started."""
    if overlay is None:
        return []
    from loopscope.view.node_data import (  # who shows no overlay need not wait for what draws
        as_json,
        given_node_data,
    )

    given_node_data(overlay, model)
    if not isinstance(overlay, Mapping):
        return ["--overlay", str(Path(overlay).resolve())]
    (folder / "overlay.json").write_bytes(as_json(overlay))
    return ["--overlay", str(folder / "overlay.json")]


def _environment() -> dict[str, str]:
    """The child imports the packages that this process would, wherever Python was started."""
    specs = map(importlib.util.find_spec, ("loopscope", "loopscope_app", "loopscope_samples"))
    own = dict.fromkeys(
        str(Path(spec.origin).resolve().parent.parent) for spec in specs if spec and spec.origin
    )
    paths = [*own, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_interactive() -> bool:
    return hasattr(sys, "ps1") or "ipykernel" in sys.modules
