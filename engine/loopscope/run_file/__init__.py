"""Saved runs: files that open at the same moment of a run; ``docs/run_file.md`` has the format."""

from __future__ import annotations

from loopscope.run_file.loading import as_recorded, load, read_run, resume
from loopscope.run_file.run_archive import ENDING, is_run_file
from loopscope.run_file.saved_run import MOST_PAUSES, SavedRun, difference_from
from loopscope.run_file.saving import recorded, save

__all__ = [
    "ENDING",
    "MOST_PAUSES",
    "SavedRun",
    "as_recorded",
    "difference_from",
    "is_run_file",
    "load",
    "read_run",
    "recorded",
    "resume",
    "save",
]
