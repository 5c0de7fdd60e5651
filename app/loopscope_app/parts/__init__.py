"""One file per visible part of a screen, each with a ``show``."""
