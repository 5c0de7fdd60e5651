"""Conversion of files of torch to .safetensors, run as a script in a process of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_MAX_TENSORS = 100_000
_TYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}


def main(pairs: str) -> None:
    """Write the tensors of each source to its target; ``pairs`` is a JSON file with their paths.

    A nested container gives dotted names.
    """
    try:
        import torch
    except ImportError:
        sys.exit("torch is not installed in this Python")
    for source, target in json.loads(Path(pairs).read_text()):
        content = torch.load(source, map_location="cpu", weights_only=True)
        _write(torch, _tensors(torch, content), target)


def _tensors(torch: Any, content: Any) -> dict[str, Any]:
    tensors: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [("", content)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, torch.Tensor):
            tensors[name or "value"] = value.detach().contiguous().resolve_conj().resolve_neg()
        elif isinstance(value, dict):
            waiting += _inside(name, reversed(value.items()))
        elif isinstance(value, (list, tuple)):
            waiting += _inside(name, reversed([*enumerate(value)]))
        if len(tensors) > _MAX_TENSORS:
            sys.exit(f"it has more than {_MAX_TENSORS:,} tensors")
    return tensors


def _inside(name: str, items: Iterable[tuple[Any, Any]]) -> list[tuple[str, Any]]:
    return [(f"{name}.{key}".lstrip("."), item) for key, item in items]


def _write(torch: Any, tensors: dict[str, Any], target: str) -> None:
    header: dict[str, object] = {}
    position = 0
    for name, tensor in tensors.items():
        kind = _TYPES.get(str(tensor.dtype).rpartition(".")[2])
        if kind is None:
            sys.exit(f"{name!r} has the type {tensor.dtype}, which is not read")
        size = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": kind,
            "shape": list(tensor.shape),
            "data_offsets": [position, position + size],
        }
        position += size
    text = json.dumps(header).encode()
    with Path(target).open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())


if __name__ == "__main__":
    main(sys.argv[1])
