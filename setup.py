"""What pyproject.toml cannot say: the folder of each package, and README with absolute links."""

import re
import tomllib
from pathlib import Path

from setuptools import find_namespace_packages, setup

ROOTS = ("engine", "app", "sample_models")
CODE = {
    name: f"{root}/{name.replace('.', '/')}"
    for root in ROOTS
    for name in find_namespace_packages(root, include=["loopscope*"])
}
MODELS = {
    ".".join(("loopscope_samples.models", *path.relative_to("sample_models").parts)): str(path)
    for path in Path("sample_models").glob("**/")
    if path.name != "sample_models" and "loopscope_samples" not in path.parts
}

SOURCE = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]["urls"]["Source"]


def absolute_links(text: str) -> str:
    """Return Markdown whose relative links and pictures work on a page of a package index."""
    raw = SOURCE.replace("github.com", "raw.githubusercontent.com")
    text = re.sub(r"(!\[[^\]]*\]\()(?!https?:)", rf"\1{raw}/main/", text)
    return re.sub(r"(?<!!)(\[[^\]]*\]\()(?!https?:|#)", rf"\1{SOURCE}/blob/main/", text)


setup(
    long_description=absolute_links(Path("README.md").read_text("utf-8")),
    long_description_content_type="text/markdown",
    packages=[*CODE, *MODELS],
    package_dir={**CODE, **MODELS},
)
