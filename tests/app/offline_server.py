"""The app's server in a process whose attempts to reach another machine are refused and written to
a file.

Arguments: the file, then those of the command.
"""

from __future__ import annotations

import sys
from pathlib import Path

from loopscope_app import cli

_HERE = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "", None)
_LOOKED_UP = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")


def main(log: str, *words: str) -> int:
    file = Path(log)

    def refuse(event: str, arguments: tuple[object, ...]) -> None:
        if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
            address = arguments[1]
        elif event in _LOOKED_UP:
            address = arguments
        else:
            return
        target = address[0] if isinstance(address, tuple) else None
        if target not in _HERE:
            with file.open("a", encoding="utf-8") as lines:
                lines.write(f"{event} {target}\n")
            raise OSError("the network is blocked")

    sys.addaudithook(refuse)
    return cli.main(list(words))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
