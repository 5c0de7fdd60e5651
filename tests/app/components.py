"""What the app sends to its own components."""

from __future__ import annotations

import json
from typing import Any

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import ButtonGroup


def sent(app: AppTest, key: str) -> Any:
    """The data of the component with a key; a failure when it is not on the screen."""
    for one in app.get("bidi_component"):
        if one.proto.id.endswith(f"-{key}") and one.proto.json:
            return json.loads(one.proto.json)
    raise AssertionError(
        f"no component {key}: {[one.proto.id for one in app.get('bidi_component')]}"
    )


def in_drawer(app: AppTest, name: str) -> AppTest:
    """The app with a drawer open, as its entry in the menu opens it."""
    app.session_state["drawer"] = name
    return app.run()


def tabs(app: AppTest, key: str) -> ButtonGroup[Any]:
    """Return the tabs of a choice; their key ends in the number of choices made elsewhere."""
    return next(
        control for control in app.segmented_control if str(control.key).startswith(f"{key}_")
    )
