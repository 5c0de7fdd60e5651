"""Types of the messages between Python and the canvas, for the checker of JavaScript: ``python -m
tests.protocol`` writes them anew, and the fixtures too.

Read from the one JSON schema of these messages, in as much of JSON schema's words as it uses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.app import protocol_fixtures

CANVAS = Path(__file__).parent.parent / "app" / "loopscope_app" / "canvas"
SCHEMA = CANVAS / "protocol" / "protocol.schema.json"
TYPES = CANVAS / "assets" / "protocol.d.ts"
_PLAIN = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def declarations() -> str:
    """The file of types."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    named = [
        f"{_comment(shape, '')}export type {name} = {_type(shape, '')};"
        for name, shape in schema["$defs"].items()
    ]
    return "\n\n".join(
        [f"// Made from {SCHEMA.name} by python -m tests.protocol.", *named, ""]
    ).removesuffix("\n")


def _type(shape: Mapping[str, Any], indent: str) -> str:
    """One shape in TypeScript."""
    match shape:
        case {"$ref": str(place)}:
            return place.rpartition("/")[2]
        case {"const": value}:
            return json.dumps(value)
        case {"enum": values}:
            return " | ".join(json.dumps(value) for value in values)
        case {"anyOf": shapes}:
            return " | ".join(_type(one, indent) for one in shapes)
        case {"prefixItems": shapes}:
            return f"[{', '.join(_type(one, indent) for one in shapes)}]"
        case {"type": "array", "items": items, "minItems": int(least), "maxItems": int(most)} if (
            least == most
        ):
            return f"[{', '.join([_type(items, indent)] * least)}]"
        case {"type": "array", "items": items}:
            return (
                f"({_type(items, indent)})[]"
                if " | " in _type(items, indent)
                else f"{_type(items, indent)}[]"
            )
        case {"properties": properties}:
            return _object(properties, shape.get("required", ()), indent)
        case {"type": "object", "additionalProperties": values}:
            return f"Record<string, {_type(values, indent)}>"
        case {"type": str(name)}:
            return _PLAIN[name]
        case {"type": list(names)}:
            return " | ".join(_PLAIN[name] for name in names)
    raise ValueError(
        f"{shape} has no type in TypeScript here: write one into {Path(__file__).name}"
    )


def _object(
    properties: Mapping[str, Mapping[str, Any]], required: Sequence[str], indent: str
) -> str:
    inner = f"{indent}  "
    lines = [
        f"{_comment(shape, inner)}{inner}{name}{'' if name in required else '?'}: {_type(shape, inner)};\n"
        for name, shape in properties.items()
    ]
    return f"{{\n{''.join(lines)}{indent}}}"


def _comment(shape: Mapping[str, Any], indent: str) -> str:
    return f"{indent}/** {shape['description']} */\n" if "description" in shape else ""


if __name__ == "__main__":
    protocol_fixtures.write()
    TYPES.write_text(declarations(), encoding="utf-8")
