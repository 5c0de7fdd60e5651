"""An address on a screen: the readable form, and a button that copies the exact form."""

from __future__ import annotations

from loopscope.errors import neutral
from loopscope.ir import readable_steps
from loopscope_app.components import component

_address = component("place", "address.js", style="address.css")
_LONGEST = 160


def show(address: str, *, key: str) -> None:
    """Draw the address. The button copies the form that links, commands and fields accept."""
    _address(
        key=key,
        data={
            "steps": [neutral(step, _LONGEST) for step in readable_steps(address)],
            "exact": address,
        },
    )
