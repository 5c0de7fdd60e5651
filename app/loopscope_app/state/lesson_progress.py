"""The progress of a user in the course, and the predictions about the open run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Learning:
    """The course of a session. Only ``loopscope_app.actions.lesson_actions`` changes it."""

    lesson: str = ""
    """Name of the lesson on the screen; empty on other screens."""
    guesses: tuple[str, ...] = ()
    """Predictions about this run, one for each question; empty without predictions."""
    revealed: bool = False
    hint: str = ""
    """Reason why the predictions could not be checked."""
    done: set[str] = field(default_factory=set[str])
    """Names of the lessons with a checked prediction."""
    large: bool = False
    """True for text that is readable from the last row of a lecture hall."""
    first_run: bool = False
    """True while the card of the first steps is on the screen."""
    first_steps: int = 0
    """Number of first steps that were done in this session."""

    def restart(self) -> None:
        """Drop predictions and answers before another run."""
        self.guesses, self.revealed, self.hint = (), False, ""
