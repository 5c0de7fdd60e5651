"""Commands on a terminal: they say what they are at and for how long, and Ctrl+C ends them with
a sentence.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from loopscope_samples import FOLDER


def missing_terminal() -> str:
    """Return why this machine gives a child no terminal of its own; empty where it gives one."""
    if not hasattr(os, "login_tty"):
        return "this system has no os.login_tty, which gives a child a terminal of its own"
    try:
        ends = os.openpty()
    except OSError as error:
        return f"this machine gives no pseudo-terminal (is /dev/pts mounted?): {error}"
    for end in ends:
        os.close(end)
    return ""


needs_terminal = pytest.mark.skipif(bool(reason := missing_terminal()), reason=reason)

ENDLESS = str(FOLDER / "infinite_loop" / "model.xml")
INPUTS = ("--inputs", "balance=1 growth=1 guard=1000000000")
HINT = "Ctrl+C stops it"

ROWS = [
    (("why", ENDLESS, "forever", *INPUTS), "stopped while running the model"),
    (("compare", ENDLESS, *INPUTS), "stopped while running the model"),
    (("drift", ENDLESS, "--round", "*=bf16", *INPUTS), "stopped while running the model"),
    (("clock", ENDLESS, "--runtime", "loopscope", *INPUTS), "stopped while timing a run"),
    (("run", ENDLESS, *INPUTS), "iterations, then the run was stopped"),
    (
        (
            "sweep",
            str(FOLDER / "collatz" / "model.xml"),
            "--inputs",
            "number=1..1000000000",
            "--workers",
            "2",
        ),
        "of 1,000,000,000 runs",
    ),
]


@needs_terminal
@pytest.mark.parametrize(("words", "told"), ROWS, ids=[words[0] for words, _ in ROWS])
def test_what_takes_long_says_so_and_ends_at_an_interrupt(
    words: tuple[str, ...], told: str
) -> None:
    code, seen = _interrupted(words)
    assert code == 130
    assert told in seen
    assert "Traceback" not in seen


def test_nothing_is_told_where_nobody_looks() -> None:
    command = [
        sys.executable,
        "-m",
        "loopscope_app.cli",
        "run",
        ENDLESS,
        "--seconds",
        "1.5",
        *INPUTS,
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, "")


@needs_terminal
def test_the_outputs_of_a_long_run_stand_on_lines_of_their_own() -> None:
    """What was told meanwhile is taken back before."""
    process, end = _on_a_terminal(("run", ENDLESS, "--seconds", "1.5", *INPUTS))
    seen = _until_the_end(end)
    assert process.wait() == 1
    assert HINT in seen
    assert seen.rpartition(HINT)[2].lstrip("\r").startswith("\x1b[K")


@needs_terminal
def test_an_interrupt_ends_a_command_of_a_suite_that_ignores_interrupts() -> None:
    """As under nohup, where a child inherits that SIGINT is ignored."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code, seen = _interrupted(ROWS[4][0])
    finally:
        signal.signal(signal.SIGINT, before)
    assert (code, ROWS[4][1] in seen) == (130, True), seen


def test_a_machine_without_terminals_is_named_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> tuple[int, int]:
        raise OSError("out of pty devices")

    monkeypatch.setattr(os, "openpty", refuse)
    assert "pseudo-terminal" in missing_terminal()
    assert "out of pty devices" in missing_terminal()


def _interrupted(words: tuple[str, ...]) -> tuple[int, str]:
    """The exit code, and all that stood on the terminal; Ctrl+C is pressed as soon as the screen
    says that it may be.
    """
    process, end = _on_a_terminal(words)
    seen = ""
    while HINT not in seen:
        try:
            seen += os.read(end, 65536).decode("utf-8", "replace")
        except OSError:  # how a terminal says that the process has gone
            pytest.fail(
                f"the command ended with {process.wait()} before it could be interrupted: {seen}"
            )
    os.write(end, b"\x03")
    seen += _until_the_end(end)
    return process.wait(), seen


# A suite that was started in the background may ignore SIGINT, and a child inherits that.
_AT_HOME = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.login_tty(0); "
    "os.execv(sys.executable, [sys.executable, '-m', 'loopscope_app.cli', *sys.argv[1:]])"
)


def _on_a_terminal(words: tuple[str, ...]) -> tuple[subprocess.Popen[bytes], int]:
    """A process with a terminal of its own, and our end of that."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", _AT_HOME, *words]
    process = subprocess.Popen(command, stdin=theirs, env={**os.environ, "COLUMNS": "120"})
    os.close(theirs)
    return process, ours


def _until_the_end(end: int) -> str:
    seen = b""
    while True:
        try:
            part = os.read(end, 65536)
        except OSError:  # how a terminal says that the process has gone
            part = b""
        if not part:
            os.close(end)
            return seen.decode("utf-8", "replace")
        seen += part
