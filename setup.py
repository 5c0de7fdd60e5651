"""The folder of the checkout that each package of the wheel comes from; everything else is in
pyproject.toml.
"""

from pathlib import Path

from setuptools import find_namespace_packages, setup

ROOTS = ("engine", "app", "sample_models")
CODE = {
    name: f"{root}/{name.replace('.', '/')}"
    for root in ROOTS
    for name in find_namespace_packages(root, include=["loopscope*"])
}
MODELS = {
    f"loopscope_samples.models.{path.name}": path.as_posix()
    for path in Path("sample_models").iterdir()
    if path.is_dir() and path.name != "loopscope_samples"
}

setup(packages=[*CODE, *MODELS], package_dir={**CODE, **MODELS})
