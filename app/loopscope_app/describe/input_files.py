"""Inputs from .npy and .npz files."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from loopscope.errors import InputError, listed
from loopscope.ir import Model
from loopscope.ops.stored import arrays_in, unpacked
from loopscope.read import open_archive
from loopscope_app.describe.signatures import signatures

MOST_BYTES = 1 << 30


def named(model: Model, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays of an .npz file by the names of ``signatures``.

    A key may be any name of an input, or one of its ``position_keys``.
    """
    by_key: dict[str, str] = {}
    for position, (key, signature) in enumerate(signatures(model).items()):
        for alias in (*position_keys(position), signature.name, *signature.names):
            by_key.setdefault(alias, key)
    by_key |= {key: key for key in signatures(model)}
    unknown = [key for key in arrays if key not in by_key]
    if unknown:
        expected = listed(list(signatures(model)))
        raise InputError(f"the file contains {listed(unknown)}: expected the inputs {expected}")
    return {by_key[key]: array for key, array in arrays.items()}


def position_keys(position: int) -> tuple[str, str, str]:
    """Return the keys of an .npz file that stand for an input by its position.

    numpy calls arrays that are saved without names ``arr_0``, ``arr_1``, ...
    """
    return f"i{position}", f"arr_{position}", str(position)


def read_arrays(name: str, data: bytes) -> dict[str, Any]:
    """Return the values of an uploaded .npz file, or of an .npy file under the empty name.

    Raise ``InputError`` if the file is not valid (``engine/loopscope/ops/stored.py``).
    """
    try:
        return unpacked(_entries(name, data))
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None


def _entries(name: str, data: bytes) -> dict[str, np.ndarray]:
    try:
        if data.startswith(b"PK"):
            with open_archive(io.BytesIO(data)):
                pass  # numpy would read an archive directory of any size
        stored = np.load(io.BytesIO(data), allow_pickle=False)
        if isinstance(stored, np.ndarray):
            return {"": stored}
        with stored:
            if sum(entry.file_size for entry in stored.zip.infolist()) > MOST_BYTES:
                raise InputError(f"{name} unpacks to more than {MOST_BYTES >> 30} GB")
            return arrays_in(stored)
    except InputError:
        raise
    except Exception:  # numpy and zipfile raise many types of errors for a damaged file
        raise InputError(
            f"{name} is not a file of plain arrays: save it with numpy.save or numpy.savez"
        ) from None
