"""The house's rules that a machine can watch: imports point one way, the engine is silent, files
stay small.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import re
from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.source_files import (
    APPLICATION,
    LIBRARY,
    PACKAGES,
    ROOT,
    SAMPLES,
    dotted,
    imported,
    imported_by,
    inside,
    room_of,
    sources,
    syntax_nodes,
    tree,
)

ALLOWED: dict[str, frozenset[str]] = {}
"""For each room of the engine, the rooms that it may import from (its own apart)."""

_CHAIN = (
    "object_cache",
    "errors",
    "plugins",
    "native",
    "ir",
    "ops",
    "checks",
    "executor",
    "timeline",
    "debug",
    "explain",
    "view",
)
for _position, _room in enumerate(_CHAIN):
    ALLOWED[_room] = frozenset(_CHAIN[:_position])
ALLOWED["version"] = frozenset()
ALLOWED["replaced_file"] = frozenset()
ALLOWED["tracing"] = frozenset({"errors", "native", "ir"})
ALLOWED["read"] = frozenset({"errors", "native", "ir", "tracing"})
ALLOWED["write"] = frozenset({"errors", "ir", "ops", "checks", "read"})
ALLOWED["builder"] = frozenset({"object_cache", "plugins", "errors", "ir", "ops", "checks"})
ALLOWED["transform"] = frozenset({"errors", "ir", "ops", "checks", "builder", "read", "write"})
ALLOWED["debug"] |= {"transform"}  # a run of a model with rounding in it
ALLOWED["explain"] |= {"transform"}  # the paths of a run, for specialising to them
ALLOWED["finite_differences"] = frozenset({"errors", "ir", "ops", "builder", "transform", "debug"})
ALLOWED["launch"] = frozenset({"plugins", "errors", "ir", "ops", "write", "debug", "view"})
ALLOWED["run_file"] = frozenset(
    {"errors", "ir", "ops", "read", "write", "transform"}
    | {"executor", "timeline", "debug", "version"}
)
ALLOWED["comparison"] = frozenset({*ALLOWED["explain"], "explain", "transform"})
ALLOWED["peers"] = frozenset({*ALLOWED["comparison"], "comparison", "write"})
ALLOWED["cases"] = frozenset({*ALLOWED["peers"], "peers", "replaced_file", "version"})
ALLOWED["view"] |= {"comparison", "transform"}  # handles of operators that open as loops
ALLOWED["sweeps"] = frozenset({*ALLOWED["explain"], "explain", "transform"})
ALLOWED["graph_session"] = frozenset({"errors", "ir", "debug"})
ALLOWED["notebook"] = frozenset({"debug", "plugins", "errors", "ir", "view"})
for _room in ("builder", "comparison", "debug", "explain", "run_file", "sweeps", "write"):
    ALLOWED[_room] |= {"replaced_file"}

DRIVEN = "loopscope.executor"
RUN = ("plan", "record", "machine", "codegen", "drive")
"""The rooms of ``DRIVEN``, lowest first: each may import from those before it."""

PARTS = ("widgets", "inspector", "many_runs", "run_views", "dock", "frame", "course")
"""The folders of ``app/loopscope_app/parts``, lowest first, likewise."""

APP = {
    "describe": (),
    "state": ("describe",),
    "links": ("state", "describe"),
    "canvas": ("state",),
    "actions": ("canvas", "links", "state", "describe"),
    "page": ("describe",),
    "notebook": ("page", "describe"),
    "parts": ("page", "actions", "canvas", "links", "state", "describe"),
    "command": ("page", "actions", "parts", "links", "describe", "state"),
}
"""For each room of app, the rooms of app that it may import from (its own apart)."""

LOOSE = frozenset({"components", "bundle", "canvas_event", "vendor", "streamlit_insides"})
"""Files of app outside its rooms that every room may use: how a component of our own is made, what
a canvas says, and what is known of Streamlit's insides.
"""

DOORS = (
    "loopscope",
    "loopscope.builder",
    "loopscope.cases",
    "loopscope.checks",
    "loopscope.comparison",
    "loopscope.debug",
    "loopscope.errors",
    "loopscope.explain",
    "loopscope.ir",
    "loopscope.native",
    "loopscope.notebook",
    "loopscope.object_cache",
    "loopscope.ops",
    "loopscope.ops.custom",
    "loopscope.ops.microsoft",
    "loopscope.ops.stored",
    "loopscope.peers",
    "loopscope.read",
    "loopscope.replaced_file",
    "loopscope.tracing",
    "loopscope.executor",
    "loopscope.run_file",
    "loopscope.sweeps",
    "loopscope.timeline",
    "loopscope.transform.recurrences",
    "loopscope.transform",
    "loopscope.version",
    "loopscope.view",
)
"""Where everything outside the engine takes it from: rooms, and the few files that are doors of
their own.
"""

PUBLIC = ROOT / "tests" / "public_names.json"
"""What each door exports; written anew only when LOOPSCOPE_REWRITE_GOLDEN=1 is set."""

LONG_FILES = {
    "tests/engine/ops/test_onnx_own.py": "one table of operators",
    "tests/engine/ops/test_movement.py": "one table of operators",
}
"""Files over MOST_LINES, each with the reason why it is better whole."""

MOST_LINES = 560


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_imports_point_one_way(room: str) -> None:
    """Those for annotations too."""
    wrong = []
    for path in sources(LIBRARY):
        if room_of(path) != room:
            continue
        for name in imported(path, at_run_time=False):
            parts = name.split(".")
            if parts[0] == APPLICATION:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
            if (
                parts[0] == LIBRARY
                and len(parts) > 1
                and parts[1] != room
                and parts[1] not in ALLOWED[room]
            ):
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong


@pytest.mark.parametrize("room", RUN)
def test_imports_inside_run_point_one_way(room: str) -> None:
    above = tuple(f"{DRIVEN}.{one}." for one in RUN[RUN.index(room) + 1 :])
    folder = DRIVEN.replace(".", "/")
    files = (
        [path for path in sources(folder) if path.stem == "drive"]
        if room == "drive"
        else sources(f"{folder}/{room}")
    )
    names = {str(path.relative_to(ROOT)): list(imported(path, at_run_time=False)) for path in files}
    assert names
    assert {
        file: found
        for file, some in names.items()
        if (found := [one for one in some if f"{one}.".startswith(above)])
    } == {}


def test_imports_inside_parts_point_one_way() -> None:
    assert {path.parent.name for path in sources(f"{APPLICATION}/parts")} - {"parts"} == set(PARTS)
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for number, folder in enumerate(PARTS)
        for path in sources(f"{APPLICATION}/parts/{folder}")
        for name in imported(path, at_run_time=False)
        if name.startswith(tuple(f"{APPLICATION}.parts.{above}" for above in PARTS[number + 1 :]))
    ]
    assert not wrong


@pytest.mark.parametrize("room", sorted(APP))
def test_imports_inside_app_point_one_way(room: str) -> None:
    allowed = {room, *APP[room]}
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources(f"{APPLICATION}/{room}")
        for name in imported(path, at_run_time=False)
        if name.startswith(f"{APPLICATION}.")
        and (above := name.split(".")[1]) not in allowed
        and above not in LOOSE
    ]
    assert not wrong


def test_every_room_of_app_has_a_rule() -> None:
    folders = {
        inside(path).parts[0] for path in sources(APPLICATION) if len(inside(path).parts) > 1
    }
    assert folders == set(APP)


def test_descriptions_and_the_codec_know_no_streamlit() -> None:
    users = [
        str(path.relative_to(ROOT))
        for path in [*sources(f"{APPLICATION}/describe"), PACKAGES[APPLICATION] / "links/codec.py"]
        if any(name.split(".")[0] == "streamlit" for name in imported(path, at_run_time=False))
    ]
    assert not users


def test_only_actions_write_a_session() -> None:
    """The rest of app reads what it is given as ``session``, or tests ``current()`` for."""
    writers = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for room in set(APP) - {"actions", "state", "command"}
        for path in sources(f"{APPLICATION}/{room}")
        for node in syntax_nodes(path)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store | ast.Del)
        and re.match(r"session\b|current\(\)", ast.unparse(node))
    ]
    assert not writers


def test_doors_export_what_they_did() -> None:
    """A name that comes, goes or changes is a decision, which the changed file of names shows."""
    now = {door: exported(door) for door in DOORS}
    if os.environ.get("LOOPSCOPE_REWRITE_GOLDEN") == "1":
        PUBLIC.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    recorded = json.loads(PUBLIC.read_text(encoding="utf-8"))
    changes = {
        door: sorted({*now.get(door, ())} ^ {*recorded.get(door, ())})
        for door in now.keys() | recorded.keys()
    }
    assert {door: names for door, names in changes.items() if names} == {}, (
        "these names came or went: if that is meant, run the test with LOOPSCOPE_REWRITE_GOLDEN=1"
    )


def exported(door: str) -> list[str]:
    """``__all__``; where a file has none, what is public and made there."""
    module = importlib.import_module(door)
    made = [
        name
        for name, value in vars(module).items()
        if name[0] != "_" and getattr(value, "__module__", door) == door
    ]
    return sorted(
        getattr(
            module,
            "__all__",
            [name for name in made if not inspect.ismodule(getattr(module, name))],
        )
    )


def test_everything_outside_the_engine_goes_through_its_doors() -> None:
    """App, documentation, samples, and the Python of README and guide."""
    files = [path for folder in (APPLICATION, "docs", SAMPLES) for path in sources(folder)]
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}
    for page in (ROOT / "README.md", ROOT / "docs/guide.md"):
        texts[page.name] = "\n".join(
            re.findall(
                r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
            )
        )
    names = json.loads(PUBLIC.read_text(encoding="utf-8"))
    inner = [
        f"{file}: {name}"
        for file, text in texts.items()
        for name in imported_by(ast.parse(text), at_run_time=False)
        if name.split(".")[0] == LIBRARY
        and name not in names
        and name.rpartition(".")[2] not in names.get(name.rpartition(".")[0], ())
    ]
    assert inner == []


@pytest.mark.parametrize("rules", [ALLOWED, APP], ids=["engine", "app"])
def test_the_rules_themselves_have_no_circle(rules: Mapping[str, Iterable[str]]) -> None:
    TopologicalSorter(rules).prepare()


def test_loose_files_of_app_import_no_room() -> None:
    """They lie below all rooms; the page (``visit``) and the command line lie above."""
    imports = {
        name: [
            one
            for one in imported(PACKAGES[APPLICATION] / f"{name}.py", at_run_time=False)
            if one.startswith(f"{APPLICATION}.")
        ]
        for name in LOOSE
    }
    below = LOOSE
    assert {
        name: found
        for name, some in imports.items()
        if (found := [one for one in some if one.split(".")[1] not in below])
    } == {}


@pytest.mark.parametrize("top", [LIBRARY, APPLICATION])
def test_imports_go_in_no_circle(top: str) -> None:
    """Imports for annotations count too."""
    imports = imports_below(top)
    reached = {name: _reached(name, imports) for name in imports}
    circles = {
        (name, other)
        for name in imports
        for other in reached[name]
        if name in reached[other] and name != other
    }
    assert sorted(circles) == []


def test_folders_of_operations_import_in_no_circle() -> None:
    """A dialect or a category is one thing here, and so is each file beside them."""
    folders: dict[str, set[str]] = {}
    for name, others in imports_below(f"{LIBRARY}/ops").items():
        own = ".".join(name.split(".")[:3])
        folders.setdefault(own, set()).update(
            {".".join(one.split(".")[:3]) for one in others} - {own}
        )
    TopologicalSorter(folders).prepare()


def imports_below(top: str) -> dict[str, set[str]]:
    """By the dotted name of each file below a folder, those that it imports."""
    files = {dotted(path): path for path in sources(top)}
    return {
        name: {_file_of(one, files) for one in imported(path, at_run_time=False)} & files.keys()
        for name, path in files.items()
    }


def _file_of(name: str, files: Mapping[str, Path]) -> str:
    """The file that a dotted name is, or is in; of what is not ours, any name."""
    return name if name in files else name.rpartition(".")[0]


def _reached(name: str, imports: Mapping[str, set[str]]) -> set[str]:
    found, waiting = set[str](), [name]
    while waiting:
        for one in imports[waiting.pop()] - found:
            found.add(one)
            waiting.append(one)
    return found


def test_every_room_has_a_rule() -> None:
    rooms = {room_of(path) for path in sources(LIBRARY)} - {"__init__"}
    assert rooms - ALLOWED.keys() == set(), "add these to ALLOWED, and a row to ARCHITECTURE.md"


def test_only_the_app_knows_streamlit() -> None:
    users = {
        dotted(path).split(".")[0]
        for folder in (LIBRARY, SAMPLES, APPLICATION)
        for path in sources(folder)
        if any(name.split(".")[0] == "streamlit" for name in imported(path, at_run_time=False))
    }
    assert users <= {APPLICATION}


def test_the_engine_never_prints() -> None:
    printing = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sources(LIBRARY)
        for node in syntax_nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("print", "input", "eval", "exec")
        and not (node.func.id == "exec" and room_of(path) == "executor")  # generated from plans
    ]
    assert not printing


def test_session_state_has_one_door() -> None:
    users = {
        inside(path).as_posix()
        for path in sources(APPLICATION)
        if any(
            isinstance(node, ast.Attribute) and node.attr == "session_state"
            for node in syntax_nodes(path)
        )
    }
    assert users <= {"state/user_session.py"}


def test_long_files_say_why() -> None:
    long = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for folder in (LIBRARY, APPLICATION, "tests", SAMPLES)
        for path in sources(folder)
    }
    assert {name for name, lines in long.items() if lines > MOST_LINES} == set(LONG_FILES)


def test_modules_say_what_they_are_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for folder in (LIBRARY, APPLICATION)
        for path in sources(folder)
        if not ast.get_docstring(tree(path))
    ]
    assert not silent
