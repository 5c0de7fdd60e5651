"""Writes all sample models and their input sets; run by hand, because the exports need the
frameworks that they come from.

pip install openvino onnx torch tensorflow
python -m loopscope_samples.make [name ...]

Named samples need only what they come from: those of ``loopscope.builder`` nothing more.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import loopscope
from loopscope_samples.recipes import recorded
from loopscope_samples.recipes.recipe import Recipe

if TYPE_CHECKING:
    import openvino as ov

SOURCES = (
    "decoders",
    "seed_page",
    "by_hand",
    "savings",
    "training",
    "opened_operators",
    "chunked_attention",
    "from_openvino",
    "linear_attention",
    "hybrid_stack",
    "from_onnx",
    "from_pytorch",
    "from_pytorch_decoders",
    "from_tensorflow",
)
"""Those that need the least are first: nothing is imported once all that is wanted was found."""
HERE = Path(__file__).parents[1]


def write(recipe: Recipe) -> None:
    """Replaces the sample's folder: model.xml, model.bin (full precision), inputs/SET.npz, and
    data.npz where it has many inputs.
    """
    folder = HERE / recipe.name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "inputs").mkdir(parents=True)
    if isinstance(recipe.model, loopscope.Model):
        loopscope.write_model(recipe.model, folder / "model.xml")
    else:
        _save(recipe.model, recipe.name, folder / "model.xml")
    for name, arrays in recipe.sets.items():
        kept: dict[str, Any] = {key: np.asarray(array) for key, array in arrays.items()}
        np.savez(folder / "inputs" / f"{name}.npz", **kept)
    if recipe.data is not None:
        many: dict[str, Any] = {key: np.asarray(array) for key, array in recipe.data.items()}
        np.savez_compressed(folder / "data.npz", **many)


def _save(model: ov.Model, name: str, path: Path) -> None:
    import openvino as ov

    model.set_friendly_name(name)
    if (
        "conversion_parameters" in model.get_rt_info()
    ):  # it names the temporary folder of the export
        del model.get_rt_info()["conversion_parameters"]
    ov.save_model(model, path, compress_to_fp16=False)


def main(wanted: list[str]) -> None:
    """Writes what is wanted, or all; ends with a sentence when a name or a framework is missing."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    made: set[str] = set()
    if not wanted or recorded.FOLDER in wanted:
        folder = HERE / recorded.FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        recorded.write(folder)
        made.add(recorded.FOLDER)
    missing: list[str] = []
    for source in SOURCES:
        if wanted and made.issuperset(wanted):
            break
        try:
            recipes = importlib.import_module(f"loopscope_samples.recipes.{source}").recipes()
        except ModuleNotFoundError as error:
            missing.append(
                f"{source} needs {error.name}, which is not installed: pip install {error.name}"
            )
            continue
        for recipe in recipes:
            if not wanted or recipe.name in wanted:
                write(recipe)
                made.add(recipe.name)
                sys.stdout.write(f"{source}: {recipe.name}\n")
    unknown = sorted(set(wanted) - made)
    if unknown:
        sys.exit("; ".join([f"no recipe was found for {', '.join(unknown)}", *missing]))
    if missing and not wanted:
        sys.exit("; ".join(missing))


if __name__ == "__main__":
    main(sys.argv[1:])
