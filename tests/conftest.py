"""What each test needs, told by what it is: marks that `make check` and people select by."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from types import ModuleType

import pytest
from hypothesis import is_hypothesis_test, settings

from loopscope.executor.codegen import tiering, whole_graph
from tests.draws import draws

# How long an example takes on a machine that does other things as well says nothing of the code,
# and whether a change may land must not depend on luck: the same examples each time.
# `--hypothesis-profile searching` draws others.
settings.register_profile("searching", deadline=None, max_examples=draws(100))
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=draws(100))
settings.load_profile("repeatable")

collect_ignore_glob = ["*/make.py", "*_programs.py"]
"""What makes the tables of recorded facts anew needs frameworks that the tests do without."""

COLLECTED = pytest.StashKey[Counter[str] | None]()
"""The number of tests by folder, before any is deselected; None in a run of part of them."""

_RUNTIMES = frozenset({"openvino", "onnxruntime"})
_OF_CHANCE = ("tests/engine/drawn/", "tests/test_fuzz.py")
_WITH_RUNTIMES = (
    "tests/engine/peers/",
    "tests/engine/read/test_tensorflow.py",
    "tests/engine/read/test_converted.py",
)
"""Where the other runtime is in a process of its own, so that no test imports it."""


@pytest.fixture(scope="session", autouse=True)
def _code_after_two_iterations() -> Iterator[None]:
    """Loops of tests are short: code is made for them after two iterations, and for graphs at the
    first run, so that it is held by every test that runs one.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiering, "STEPPED_FIRST", 2)
        patch.setattr(whole_graph, "STEPPED_RUNS", 0)
        yield


@pytest.hookimpl(tryfirst=True)  # before the options that select by mark are read
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Count the tests; mark ``browser`` (a real chromium), ``oracle`` (another runtime) and
    ``chance`` (drawn models and inputs).
    """
    whole = {config.rootpath / name for name in config.getini("testpaths")} <= {
        config.invocation_params.dir / name for name in config.args
    }
    folders = (item.nodeid.partition("::")[0].split("/")[:-1] for item in items)
    counts = Counter("/".join(parts[: 3 if parts[0] == "tests" else 1]) for parts in folders)
    config.stash[COLLECTED] = counts if whole else None
    oracles: dict[ModuleType, bool] = {}
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        if "browser" in item.fixturenames:
            item.add_marker("browser")
        module = item.module
        if module not in oracles:
            oracles[module] = _asks_a_runtime(module)
        if oracles[module] or item.nodeid.startswith(_WITH_RUNTIMES):
            item.add_marker("oracle")
        if is_hypothesis_test(item.obj) or item.nodeid.startswith(_OF_CHANCE):
            item.add_marker("chance")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are imported, and exclude what was imported from then on.

    Almost everything that is made meanwhile remains: importing takes a quarter less time. A full
    collection looks at 870,000 objects otherwise, which takes 0.3 seconds; tests of memory and
    uploads to the app request many.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def _asks_a_runtime(module: ModuleType) -> bool:
    """Whether a file of tests, or one of our own that it takes names from, imports a runtime
    that the engine is compared with.
    """
    ours = {
        module,
        *(sources for sources in map(_source, vars(module).values()) if sources is not None),
    }
    return any(
        isinstance(value, ModuleType) and value.__name__.split(".")[0] in _RUNTIMES
        for one in ours
        for value in vars(one).values()
    )


def _source(value: object) -> ModuleType | None:
    """The file of tests that a name was taken from."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return sys.modules.get(name) if isinstance(name, str) and name.startswith("tests.") else None
