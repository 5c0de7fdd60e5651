"""The package that users install: a wheel from a clean clone, in an environment of its own,
draws a graph in a real browser.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from playwright.sync_api import Page, expect

from loopscope.version import VERSION
from loopscope_app import vendor
from tests.app.browsing import open_sample
from tests.app.serving import ROOT, serving


def test_the_committed_layout_library_is_the_one_that_the_lock_file_names() -> None:
    assert vendor.present(), "run python -m loopscope_app.vendor and commit what it writes"


def test_the_licence_of_the_layout_library_lies_beside_it() -> None:
    notice = (vendor.VENDOR / "NOTICE.md").read_text(encoding="utf-8")
    assert f"Viz.js {vendor.locked()['version']}" in notice


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    printed = subprocess.check_output(
        [sys.executable, "-m", "loopscope_app.cli", "--version"], text=True, cwd=ROOT
    )
    first, *runtimes = printed.splitlines()
    assert first == f"loopscope {VERSION}"
    assert f"ONNX Runtime {metadata.version('onnxruntime')}" in runtimes
    assert f"OpenVINO {metadata.version('openvino')}" in runtimes


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel made from what is committed, as nobody's machine left it."""
    folder = tmp_path_factory.mktemp("wheel")
    clone, built = folder / "clone", folder / "built"
    subprocess.run(["git", "clone", "--quiet", "--no-local", str(ROOT), str(clone)], check=True)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            str(built),
            str(clone),
        ],
        check=True,
    )
    (made,) = built.iterdir()
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment that holds the wheel and its run-time dependencies,
    nothing else.

    The dependencies are links to the packages of this environment, which takes no time.
    """
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(folder)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (installed,) = metadata.distributions(name="loopscope", path=[str(packages)])
    for dependency in _dependencies(installed):
        for top in {file.parts[0] for file in dependency.files or () if file.parts[0] != ".."}:
            if top != "__pycache__" and not (packages / top).exists():
                (packages / top).symlink_to(Path(str(dependency.locate_file(top))))
    return python


def _dependencies(package: metadata.Distribution) -> Iterator[metadata.Distribution]:
    """Yield all that a package requires without extras, directly or not."""
    seen, waiting = set[str](), [(text, {""}) for text in package.requires or ()]
    while waiting:
        text, extras = waiting.pop()
        requirement = Requirement(text)
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in extras):
            continue
        dependency = metadata.distribution(requirement.name)
        assert requirement.specifier.contains(dependency.version, prereleases=True)
        if requirement.name not in seen:
            seen.add(requirement.name)
            yield dependency
            waiting += [(text, requirement.extras or {""}) for text in dependency.requires or ()]


@pytest.fixture
def fresh_server(installed: Path, tmp_path: Path) -> Iterator[str]:
    """The installed command, away from the clone and without npm, node or dot in its path."""
    environment = {
        "PATH": str(installed.parent),
        "HOME": str(tmp_path),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
    }
    with serving(
        [str(installed.with_name("loopscope"))], folder=tmp_path, environment=environment
    ) as address:
        yield address


def test_the_wheel_holds_all_that_the_clone_shows(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    tracked = subprocess.check_output(
        ["git", "ls-files", "app", "engine", "sample_models"], cwd=ROOT, text=True
    ).splitlines()
    files = [path for path in tracked if not path.startswith("app/vscode/")]  # another package
    assert not [name for name in map(in_wheel, files) if name not in held]


def in_wheel(path: str) -> str:
    """The name in the wheel of a file of the clone."""
    _, package, *rest = path.split("/")
    return "/".join(
        (package, *rest)
        if package.startswith("loopscope")
        else ("loopscope_samples", "models", package, *rest)
    )


def test_the_wheel_installs_only_names_that_begin_with_loopscope(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert [name for name in sorted(tops) if not name.startswith("loopscope")] == []


@pytest.mark.browser
@pytest.mark.timeout(600)
def test_an_installed_loopscope_draws_a_graph(fresh_server: str, page: Page) -> None:
    canvas = open_sample(page, fresh_server, "collatz")
    expect(canvas).to_contain_text("while_not_one")
    assert canvas.locator(".box").count() > 10
