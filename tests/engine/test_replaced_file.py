"""What a failed write leaves: the file that was there before, and nothing beside it."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import loopscope
from loopscope.errors import WriteError
from loopscope.explain import export
from loopscope.explain.export import escaped, write_csv
from loopscope.replaced_file import replaced_file, replaced_files
from loopscope_app.cli import main
from loopscope_app.command.agent_files import AgentPages
from tests.app.serving import ROOT, SOURCES

COLLATZ = str(ROOT / "sample_models/collatz/model.xml")
ATTENTION = str(ROOT / "sample_models/linear_attention/model.xml")
GIVEN = ["--inputs", "number=3"]
WRITERS = {
    "run --outputs": (["run", COLLATZ, *GIVEN, "--outputs"], "o.npz"),
    "run --save": (["run", COLLATZ, *GIVEN, "--save"], "o.loopscope"),
    "value": (["value", COLLATZ, "steps", *GIVEN, "-o"], "o.npy"),
    "page": (["page", COLLATZ, *GIVEN, "-o"], "o.html"),
    "drift csv": (
        ["drift", ATTENTION, "--inputs", "random", "--round", "*=bf16", "--out"],
        "o.csv",
    ),
    "drift parquet": (
        ["drift", ATTENTION, "--inputs", "random", "--round", "*=bf16", "--out"],
        "o.parquet",
    ),
    "sweep": (
        ["sweep", COLLATZ, "--inputs", "number=1..3", "--workers", "1", "--out"],
        "o.parquet",
    ),
    "gradients": (
        ["gradients", ATTENTION, "--of", "attention", "--with-respect-to", "query", "-o"],
        "o.xml",
    ),
    "convert": (["convert", COLLATZ], "o.xml"),
    "convert pb": (["convert", COLLATZ], "o.pb"),
    "convert pbtxt": (["convert", COLLATZ], "o.pbtxt"),
}
OLD = b"what was there"


@pytest.fixture
def crowded() -> object:
    """A disk on which a file may have no byte."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("command", WRITERS)
def test_a_full_disk_leaves_the_old_file(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], crowded: Callable[[int], None]
) -> None:
    words, name = WRITERS[command]
    target = tmp_path / name
    beside = {target: OLD, target.with_suffix(".bin"): OLD} if name == "o.xml" else {target: OLD}
    for path, content in beside.items():
        path.write_bytes(content)
    crowded(16)
    assert main([*words, str(target)]) == 2
    crowded(resource.RLIM_INFINITY)
    said = capsys.readouterr().err.splitlines()[-1]
    assert name in said
    assert "File too large" in said
    left = {path: path.read_bytes() for path in tmp_path.iterdir() if path.suffix != ".part"}
    assert left == beside


@pytest.mark.parametrize("command", WRITERS)
def test_a_file_keeps_its_permissions_and_its_links(command: str, tmp_path: Path) -> None:
    words, name = WRITERS[command]
    (tmp_path / "there").mkdir()
    real, link = tmp_path / "there" / name, tmp_path / name
    real.write_bytes(OLD)
    real.chmod(0o640)
    link.symlink_to(real)
    assert main([*words, str(link)]) == 0
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert real.read_bytes() != OLD
    assert [path.name for path in (tmp_path / "there").iterdir()] == [name]


_SLOW = """
import sys, time
from loopscope.replaced_file import replaced_file
try:
    with replaced_file(sys.argv[1]) as file:
        file.write(b"new" * 100_000)
        file.flush()
        print("begun", flush=True)
        time.sleep(60)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stop_in_the_middle_leaves_the_old_file(number: signal.Signals, tmp_path: Path) -> None:
    target = tmp_path / "o.npz"
    target.write_bytes(OLD)
    script = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n" + _SLOW
    command = [sys.executable, "-c", script, str(target)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": SOURCES}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(number)
        process.wait(30)
    assert target.read_bytes() == OLD
    if number == signal.SIGINT:
        assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ValueError("x")])
def test_an_exception_leaves_the_old_files(error: BaseException, tmp_path: Path) -> None:
    targets = [tmp_path / "a", tmp_path / "b"]
    targets[0].write_bytes(OLD)

    def write() -> None:
        with replaced_files(*targets) as (first, second):
            first.write(b"new")
            second.write(b"new")
            raise error

    with pytest.raises(BaseException, match=r"^x?$"):
        write()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": OLD}


def test_of_two_files_none_is_replaced_where_the_second_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_bytes(OLD)
    (tmp_path / "m.bin").mkdir()
    with pytest.raises(WriteError, match="this is a folder"):
        loopscope.write_model(loopscope.read_model(COLLATZ), tmp_path / "m.xml")
    assert (tmp_path / "m.xml").read_bytes() == OLD
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.bin", "m.xml"]


def _umask() -> int:
    number = os.umask(0o022)
    os.umask(number)
    return number


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    with replaced_file(tmp_path / "a") as file:
        file.write(b"new")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o666 & ~_umask()


def test_a_link_to_nothing_makes_what_it_names(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("there")
    with replaced_file(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_bytes() == b"new"


def test_links_in_a_circle_are_said(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match=r"symbolic links.*/a'"), replaced_file(tmp_path / "a"):
        pass


def test_a_pipe_receives_the_content_in_the_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "o.npy")
    got: list[bytes] = []
    reader = threading.Thread(
        target=lambda: got.append((tmp_path / "o.npy").read_bytes()), daemon=True
    )
    reader.start()
    assert main(["value", COLLATZ, "steps", *GIVEN, "-o", str(tmp_path / "o.npy")]) == 0
    reader.join(20)
    assert got[0].startswith(b"\x93NUMPY")
    assert [path.name for path in tmp_path.iterdir()] == ["o.npy"]


@pytest.mark.parametrize("into", ["pipe", "file"])
def test_standard_output_is_no_file_to_replace(into: str, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "loopscope_app.cli",
        "value",
        COLLATZ,
        "steps",
        *GIVEN,
        "-o",
        "/dev/stdout",
    ]
    target = tmp_path / "out"
    with target.open("wb") as file:
        ended = subprocess.run(
            command, cwd=ROOT, stdout=file if into == "file" else subprocess.PIPE, check=True
        )
    content = target.read_bytes() if into == "file" else ended.stdout
    assert content.startswith(b"\x93NUMPY")
    assert b"/dev/stdout: " in content  # the command's sentence follows
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_device_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["value", COLLATZ, "steps", *GIVEN, "-o", "/dev/full"]) == 2
    assert capsys.readouterr().err == "loopscope: /dev/full: No space left on device\n"


@pytest.mark.parametrize("ending", [".npz", ".csv", ".parquet", ".json"])
def test_a_full_disk_leaves_an_exported_trace(
    ending: str, tmp_path: Path, crowded: Callable[[int], None]
) -> None:
    debugger = loopscope.Debugger(loopscope.read_model(COLLATZ), [3])
    debugger.run()
    target = tmp_path / f"trace{ending}"
    target.write_bytes(OLD)
    crowded(16)
    with pytest.raises(OSError, match=f"File too large.*{target.name}"):
        export(debugger, target)
    crowded(resource.RLIM_INFINITY)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [OLD]


def test_a_page_of_an_agent_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, crowded: Callable[[int], None]
) -> None:
    debugger = loopscope.Debugger(loopscope.read_model(COLLATZ), [3])
    debugger.run()
    crowded(16)
    with pytest.raises(WriteError, match="cannot be written: File too large"):
        AgentPages(str(tmp_path)).write(debugger, "a", "", with_values=True)
    crowded(resource.RLIM_INFINITY)
    assert list(tmp_path.iterdir()) == []


IN_PLACE = re.compile(
    r"""open\([^)\n]*["'][wax]b?\+?["']|\.write_text\(|\.write_bytes\(|to_csv\((?!file)|to_parquet\((?!file)|\.savez"""
)
TEMPORARY = (
    "engine/loopscope/peers/",
    "engine/loopscope/read/",
    "engine/loopscope/native/",
    "engine/loopscope/launch.py",
    "engine/loopscope/tracing/import_dumps.py",
    "engine/loopscope/tracing/torch_dump.py",
    "app/loopscope_app/command/web_model.py",
    "engine/loopscope/sweeps/job.py",
    "engine/loopscope/sweeps/storage.py",
    "engine/loopscope/tracing/import_dumps.py",
    "engine/loopscope/tracing/torch_dump.py",
    "app/loopscope_app/command/web_model.py",
)
"""Files that write into folders of their own, and the stream that a stopped sweep resumes."""


INTO_AN_ARCHIVE = ("archive.open(", "inner.open(", "ZipFile(", ".savez`` would", "numpy.savez")


def test_no_file_is_written_in_place() -> None:
    files = [
        *(ROOT / "engine" / "loopscope").rglob("*.py"),
        *(ROOT / "app" / "loopscope_app").rglob("*.py"),
    ]
    names = {path.relative_to(ROOT).as_posix(): path for path in files}
    found = [
        f"{name}: {line.strip()}"
        for name, path in names.items()
        if not name.startswith(TEMPORARY)
        for line in path.read_text(encoding="utf-8").splitlines()
        if IN_PLACE.search(line) and not any(text in line for text in INTO_AN_ARCHIVE)
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+x", "-x", "@x", "\t=1", "\r=1", "-1+1", "--1", "+", "-", "1e5\n"[-1:] + "=1", "＝1"],
)
def test_text_is_no_formula(text: str) -> None:
    assert escaped(text) == f"'{text}"


@pytest.mark.parametrize(
    "cell",
    ["-1", "+1", "-1.5e-07", "-.5", "-inf", "-nan", "a=b", "", " =", -1, -1.5, None, "main/x"],
)
def test_numbers_and_other_texts_stay(cell: object) -> None:
    assert escaped(cell) is cell


def test_a_table_with_formulas(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["=1", "b"], "n": pd.array([1, None], "Int64"), "x": [-1.5, np.nan]})
    write_csv(frame, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text(encoding="utf-8").splitlines() == [
        "a,n,x",
        "'=1,1,-1.5",
        "b,,",
    ]
