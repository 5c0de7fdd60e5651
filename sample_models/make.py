"""Writes all sample models and their input sets; run by hand, because the exports need the frameworks that they come from.

pip install openvino onnx torch tensorflow
python -m sample_models.make [name ...]
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import openvino as ov

import engine
from sample_models.recipes.recipe import Recipe

SOURCES = ("decoders", "by_hand", "savings", "from_pytorch", "from_tensorflow", "from_onnx")
HERE = Path(__file__).parent


def write(recipe: Recipe) -> None:
    """Replaces the sample's folder: model.xml, model.bin (full precision), inputs/SET.npz."""
    folder = HERE / recipe.name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "inputs").mkdir(parents=True)
    if isinstance(recipe.model, engine.Model):
        engine.write_model(recipe.model, folder / "model.xml")
    else:
        _save(recipe.model, recipe.name, folder / "model.xml")
    for name, arrays in recipe.sets.items():
        np.savez(folder / "inputs" / f"{name}.npz", **{key: np.asarray(array) for key, array in arrays.items()})


def _save(model: ov.Model, name: str, path: Path) -> None:
    model.set_friendly_name(name)
    if "conversion_parameters" in model.get_rt_info():  # it names the temporary folder of the export
        del model.get_rt_info()["conversion_parameters"]
    ov.save_model(model, path, compress_to_fp16=False)


def main(wanted: list[str]) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    for source in SOURCES:
        module = importlib.import_module(f"sample_models.recipes.{source}")
        for recipe in module.recipes():
            if not wanted or recipe.name in wanted:
                write(recipe)
                sys.stdout.write(f"{source}: {recipe.name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
