"""Joining ES modules: what becomes one module, and what is refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopscope_app.bundle import bundle

APP = Path(__file__).parent.parent.parent / "app" / "loopscope_app"


def written(folder: Path, files: dict[str, str]) -> Path:
    """Files of a folder; the first is the entry."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / next(iter(files))


def test_what_is_imported_comes_first_and_once(tmp_path: Path) -> None:
    files = {
        "entry.js": '// Entry.\nimport { b } from "./b.js";\nimport {\n  a,\n  A,\n} from "./a.js";\n\nexport default function () {}\n',
        "b.js": '// B.\nimport { a } from "./a.js";\n\nexport const b = a + 1;\n',
        "a.js": "// A.\nexport const a = 1;\nexport class A {}\n",
    }
    joined = "const a = 1;\nclass A {}\n\nconst b = a + 1;\n\nexport default function () {}\n"
    assert bundle(written(tmp_path, files)) == joined


def test_a_file_of_another_folder_is_joined_once(tmp_path: Path) -> None:
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
    entry = 'import { a } from "./a.js";\nimport { b } from "../other/b.js";\n\nexport default function () {}\n'
    written(
        tmp_path / "one",
        {"entry.js": entry, "a.js": 'import { b } from "../other/b.js";\nexport const a = b;\n'},
    )
    written(tmp_path / "other", {"b.js": "export const b = 1;\n"})
    joined = bundle(tmp_path / "one" / "entry.js")
    assert joined == "const b = 1;\n\nconst a = b;\n\nexport default function () {}\n"


ENTRY = 'import { a } from "./a.js";\nexport default function () {}\n'
REFUSED = {
    "a circle": (
        {
            "entry.js": ENTRY,
            "a.js": 'import { b } from "./b.js";\nexport const a = 1;\n',
            "b.js": 'import { a } from "./a.js";\nexport const b = 1;\n',
        },
        "b.js imports a.js, which imports it again",
    ),
    "itself": (
        {"entry.js": ENTRY, "a.js": 'import { a } from "./a.js";\nexport const a = 1;\n'},
        "a.js imports a.js, which imports it again",
    ),
    "no such file": ({"entry.js": ENTRY}, "entry.js imports a.js, which is no file"),
    "a name that is not exported": (
        {"entry.js": ENTRY, "a.js": "const a = 1;\n"},
        "entry.js imports a from a.js, which does not export it",
    ),
    "one name twice": (
        {
            "entry.js": f"{ENTRY}const one = 1;\n",
            "a.js": "export const a = 1;\nfunction one() {}\n",
        },
        "2 files that entry.js consists of declare one",
    ),
    "another name for an import": (
        {
            "entry.js": 'import { a as b } from "./a.js";\nexport default function () {}\n',
            "a.js": "export const a = 1;\n",
        },
        "entry.js imports a as b from a.js",
    ),
    "a package": (
        {"entry.js": 'import { a } from "a";\nexport default function () {}\n'},
        "not 'import { a } from \"a\";'",
    ),
    "a default import": (
        {"entry.js": 'import a from "./a.js";\nexport default function () {}\n'},
        "not 'import a from",
    ),
    "a list of exports": (
        {"entry.js": ENTRY, "a.js": "const a = 1;\nexport { a };\nexport const b = 2;\n"},
        "does not export it",
    ),
    "exports of another file": (
        {"entry.js": 'export * from "./a.js";\nexport default function () {}\n'},
        "not 'export \\* from",
    ),
    "names taken apart": (
        {"entry.js": "const { a } = {};\nexport default function () {}\n"},
        "not 'const { a } = {};'",
    ),
    "nothing to begin with": ({"entry.js": "const a = 1;\n"}, "exports a default function"),
    "two to begin with": (
        {"entry.js": ENTRY, "a.js": "export const a = 1;\nexport default function () {}\n"},
        "exports a default function",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_joined_is_refused(tmp_path: Path, case: str) -> None:
    files, said = REFUSED[case]
    with pytest.raises(ValueError, match=said):
        bundle(written(tmp_path, files))


def test_every_script_of_the_app_is_part_of_a_component() -> None:
    """And every component's script can be joined."""
    scripts = [path for path in sorted(APP.rglob("*.js")) if "node_modules" not in path.parts]
    entries = [path for path in scripts if "\nexport default" in path.read_text(encoding="utf-8")]
    joined = [bundle(path) for path in entries]
    forgotten = [
        path.name for path in scripts if not any(first_declaration(path) in one for one in joined)
    ]
    assert len(entries) >= 9
    assert not forgotten


def first_declaration(script: Path) -> str:
    """The line of a script that no other one has."""
    lines = (
        line.removeprefix("export ") for line in script.read_text(encoding="utf-8").splitlines()
    )
    declared = [
        line
        for line in lines
        if line.startswith(("class ", "const ", "function ", "async function "))
    ]
    return next(iter(declared), "export default function")


def test_comments_on_lines_of_their_own_stay_behind(tmp_path: Path) -> None:
    (tmp_path / "entry.js").write_text(
        "// What it is for.\n\n/**\n * Twice.\n * @param {number} x\n */\nfunction twice(x) {\n  // Quick.\n"
        "  return 2 * x; // as said\n}\n/** @type {number} */ (twice(1)).toFixed();\n\nexport default function () {}\n"
    )
    assert bundle(tmp_path / "entry.js") == (
        "function twice(x) {\n  return 2 * x; // as said\n}\n/** @type {number} */ (twice(1)).toFixed();\n\nexport default function () {}\n"
    )
