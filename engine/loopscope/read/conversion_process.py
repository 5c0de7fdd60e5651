"""Script that converts one model with OpenVINO, so that a frontend's crash ends only this process.

Arguments: the model, the .xml file to write, and a mode: "read", "convert", or "partly", which
leaves TensorFlow operations without a conversion in the IR. It runs as a file, so it does not
import loopscope.
"""

from __future__ import annotations

import sys
from typing import Any


def main(source: str, target: str, how: str) -> int:
    """Return 0 if the .xml file and its .bin are written; else 1, with the reason in stderr's last
    line.
    """
    # OpenVINO's converter reports its use to a public address unless this package is absent.
    # None in sys.modules is Python's mark for a module that cannot be imported.
    modules: dict[str, Any] = sys.modules
    modules["openvino_telemetry"] = None
    import openvino

    try:
        match how:
            case "read":
                model = openvino.Core().read_model(source)
            case "convert":
                model = openvino.convert_model(source, verbose=False)
            case _:
                from openvino.frontend import FrontEndManager

                frontend = FrontEndManager().load_by_framework("tf")
                model = frontend.convert_partially(frontend.load(source))
        openvino.serialize(model, target, target.removesuffix("xml") + "bin")
    except Exception as error:
        sys.stderr.write("\n" + " ".join(str(error).split())[-20_000:] + "\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
