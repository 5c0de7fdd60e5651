"""Confirmation of source programs: a code that is printed in the terminal and entered in the page.

Running a source program runs code of this machine. A page of another origin may press the app's
buttons where a rule of the server has a gap, but it cannot read the terminal.
"""

from __future__ import annotations

import hmac
import secrets
import sys
from threading import Lock

from loopscope.errors import InputError, neutral, shorten

_lock = Lock()
_codes: dict[str, str] = {}
_confirmed: set[str] = set()


def confirm(program: str, entered: str) -> None:
    """Return if the code of this program was entered; else print a code and raise ``InputError``.

    After a wrong code, the terminal shows another one.
    """
    with _lock:
        if program in _confirmed:
            return
        code = _codes.pop(program, "")
        if code and hmac.compare_digest(code.encode(), entered.strip().lower().encode()):
            _confirmed.add(program)
            return
        keep = bool(code) and not entered.strip()
        new = code if keep else secrets.token_hex(5)
        _codes[program] = new
    name = neutral(program, 200)
    if sys.stdout is not None:
        sys.stdout.write(f"Loopscope: to run the source program {name}, enter {new} in the page\n")
        sys.stdout.flush()
    wrong = "this code does not belong to the program"
    reason = wrong if entered.strip() else "a source program runs code on this computer"
    raise InputError(
        f"{reason}: enter the code that Loopscope's terminal shows for {shorten(program)!r}, "
        "then press Compare again"
    )
