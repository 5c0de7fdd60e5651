"""An address on a screen: as people read it, with its exact form a click away."""

from __future__ import annotations

from loopscope.errors import neutral
from loopscope.ir import readable_steps
from loopscope_app.components import component

_address = component("place", "address.js", style="address.css")
_LONGEST = 160


def show(address: str, *, key: str) -> None:
    """Draws it; the button copies what links, commands and every field take."""
    _address(
        key=key,
        data={
            "steps": [neutral(step, _LONGEST) for step in readable_steps(address)],
            "exact": address,
        },
    )
