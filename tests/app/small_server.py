"""A server for others whose sessions end soon after their page was closed, and whose memory is
small.

Arguments: seconds, megabytes that all sessions may hold together, seconds after which a run counts
as left alone, megabytes that the values of one run may take (0: as many as on any server), and
those of a server; ``--local``: it is the user's own, and opens files.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from loopscope_app import cli
from loopscope_app.actions import memory_budget
from loopscope_app.command import serve
from loopscope_app.state import launch

_settings = serve.settings


def main(seconds: str, megabytes: str, left_alone: str, of_one: str, *others: str) -> int:
    def settings(address: str, port: int) -> Mapping[str, Any]:
        # The visitors of tests do not ask for the page, with which a token against forged requests
        # comes.
        return {
            **_settings(address, port),
            "server.disconnectedSessionTTL": float(seconds),
            "server.enableXsrfProtection": False,
        }

    serve.settings = settings
    memory_budget.budget = lambda: int(megabytes) * 2**20
    memory_budget.LEFT_ALONE = (float(left_alone),)
    if int(of_one):
        launch._PER_SESSION = replace(launch._PER_SESSION, memory_bytes=int(of_one) * 2**20)
    own = "--local" in others
    return cli.main([*([] if own else ["--server"]), *(one for one in others if one != "--local")])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
