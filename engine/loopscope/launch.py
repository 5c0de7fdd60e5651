"""Start of the app on a model in Python's memory."""

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
_CLOSE_SECONDS = 5.0
"""Seconds that the app gets to close."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RunningApp:
    """The app on a model: its address, its process, and its files."""

    url: str
    process: subprocess.Popen[bytes]
    folder: tempfile.TemporaryDirectory[str]

    def __repr__(self) -> str:
        return f"<Loopscope at {self.url}{'' if self.process.poll() is None else ', closed'}>"

    def wait(self) -> None:
        """Wait until the app is closed, for example with Ctrl+C."""
        try:
            self.process.wait()
        except KeyboardInterrupt:
            pass
        finally:
            self.stop()

    def stop(self) -> None:
        """Close the app, and remove the files that it was started on."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_CLOSE_SECONDS)
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
    """Start the app on a model, with these inputs selected, and open it in the browser.

    ``inputs`` are those of ``loopscope.run``; by default the app creates some. ``overlay`` maps
    addresses or names of nodes to numbers or texts, or is a JSON file of such a mapping; it is
    shown as colours. ``wait=True`` waits until the app is closed (default: in a script, but not at
    a prompt or in a notebook). The returned object closes the app. Raises ``InputError`` for
    unsuitable inputs, ``WriteError`` for an ONNX model that was not read from a file, ``ReadError``
    for an overlay that names no node of the model, and ``EngineError`` if the app is not installed.
    """
    expect_model(model, "loopscope.show")
    command = plugin(COMMAND, _COMMAND)
    if command is None:
        raise EngineError("the app is not there: install loopscope as a whole")
    folder = tempfile.TemporaryDirectory(prefix="loopscope-")
    try:
        arguments = [
            *_model_arguments(model, inputs, Path(folder.name)),
            *_overlay_arguments(model, overlay, Path(folder.name)),
        ]
        port = _free_port()
        options = ["--port", str(port), *([] if browser else ["--no-browser"])]
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", command.module, *arguments, *options], env=_environment()
        )
    except BaseException:
        folder.cleanup()
        raise
    app = RunningApp(f"http://localhost:{port}", process, folder)
    atexit.register(app.stop)
    if not _is_interactive() if wait is None else wait:
        app.wait()
    return app


def _model_arguments(model: Model, inputs: Inputs, folder: Path) -> list[str]:
    """Return the arguments of the command: files in the folder, or the file that an ONNX model came
    from.
    """
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
            packed(
                {
                    str(position): arrays[signature.layer]
                    for position, signature in enumerate(model.inputs)
                }
            ),
        )
        words += ["--inputs", str(folder / "inputs.npz")]
    return words


def _overlay_arguments(model: Model, overlay: Given | None, folder: Path) -> list[str]:
    """Return the option for the overlay, which is checked before the app starts."""
    if overlay is None:
        return []
    from loopscope.view.node_data import (  # imported here because drawing is slow to import
        as_json,
        given_node_data,
    )

    given_node_data(overlay, model)
    if not isinstance(overlay, Mapping):
        return ["--overlay", str(Path(overlay).resolve())]
    (folder / "overlay.json").write_bytes(as_json(overlay))
    return ["--overlay", str(folder / "overlay.json")]


def _environment() -> dict[str, str]:
    """Return an environment in which the child imports the same packages as this process."""
    specs = map(importlib.util.find_spec, ("loopscope", "loopscope_app", "loopscope_samples"))
    package_folders = dict.fromkeys(
        str(Path(spec.origin).resolve().parent.parent) for spec in specs if spec and spec.origin
    )
    paths = [*package_folders, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_interactive() -> bool:
    return hasattr(sys, "ps1") or "ipykernel" in sys.modules
