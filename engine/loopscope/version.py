"""Version of Loopscope, from which the package's metadata is made."""

from typing import Final

VERSION: Final = "0.2.0"
