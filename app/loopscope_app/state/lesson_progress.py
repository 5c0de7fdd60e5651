"""The progress of a user in the course, and the predictions about the open run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Learning:
    """Part of the session; written by ``loopscope_app.actions.lesson_actions`` only."""

    lesson: str = ""
    """Name of the lesson on the screen; empty on all other screens."""
    guesses: tuple[str, ...] = ()
    """What was predicted of this run, one text for each question; empty before, or where no
    prediction was made.
    """
    revealed: bool = False
    hint: str = ""
    """What was missing when the answer was asked for."""
    done: set[str] = field(default_factory=set[str])
    """Names of the lessons in which a prediction was checked."""
    large: bool = False
    """Type for the last row of a lecture hall."""

    def restart(self) -> None:
        """Before another run: nothing is predicted, nothing revealed."""
        self.guesses, self.revealed, self.hint = (), False, ""
