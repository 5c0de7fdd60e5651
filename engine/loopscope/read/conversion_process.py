"""Converts one model with OpenVINO in a process of its own: a frontend that crashes or hangs on a
bad file takes nothing with it.

Arguments: the model, the .xml file to write, and how: "read", "convert", or "partly", which keeps
TensorFlow's operations that have no conversion. Started as a file, so it imports nothing of ours.
"""

from __future__ import annotations

import sys


def main(source: str, target: str, how: str) -> int:
    """0 when the .xml file (and its .bin) is written; else the last line of stderr says why not."""
    # OpenVINO's converter reports its use to a public address unless this package is absent.
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # Python's mark for a module that cannot be imported
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
