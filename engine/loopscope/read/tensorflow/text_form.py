"""Meta graphs and SavedModels as text, in the binary form that OpenVINO's frontend reads."""

from __future__ import annotations

from pathlib import Path

from loopscope.read.file_limits import ReadLimits
from loopscope.read.recognise import Format
from loopscope.read.tensorflow.graph_file import parsed


def write_binary(text: Path, found: Format, target: Path, limits: ReadLimits) -> None:
    """Writes what a file says as text to ``target``: of a ``META_GRAPH_TEXT`` or
    ``SAVED_MODEL_TEXT`` all that a conversion asks for.

    ``ValueError`` when the text is none, or longer than ``limits.graph_text_bytes``.
    """
    if (size := text.stat().st_size) > limits.graph_text_bytes:
        raise ValueError(
            f"it has {size:,} bytes, more than the limit 'graph_text_bytes' of {limits.graph_text_bytes:,}"
        )
    target.write_bytes(parsed(text, found).SerializeToString())
