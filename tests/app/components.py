"""What the app sends to its own components."""

from __future__ import annotations

import json
from typing import Any

from streamlit.testing.v1 import AppTest


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
