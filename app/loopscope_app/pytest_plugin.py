"""Plugin for pytest: the fixture ``loopscope``, and files ``loops.toml`` as tests.

pytest imports this file at every start, therefore it imports the rest of Loopscope when a test
needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from loopscope_app.command.loop_tests.expectations import Expectation
    from loopscope_app.command.loop_tests.file import LoopTest

_FILE = "loops.toml"
_SECONDS = 120.0


class VerifiedRun:
    """One run, or the runs of a data set, with a method for each kind of expectation.

    Each method raises ``AssertionError`` with the reason and the place if the expectation fails,
    and ``loopscope.EngineError`` if it cannot be verified.
    """

    def __init__(self, model: str | Path, inputs: str | Path, folder: Path) -> None:
        from loopscope_app.command.loop_tests.command import verifier_of
        from loopscope_app.command.loop_tests.file import LoopTest

        test = LoopTest("", str(model), str(inputs), (), folder)
        self._verifier = verifier_of(test, _SECONDS)

    def iterations(self, address: str, bound: int | str) -> None:
        """Expect a bound of the iteration count of a loop: ``7``, ``"<= 64"``, ``"3..9"``."""
        from loopscope_app.command.loop_tests.expectations import parse_iterations

        self._expect(parse_iterations(address, bound))

    def ended(self, address: str, *endings: str) -> None:
        """Expect one of some endings of a loop, such as ``"condition"`` or ``"trip_count"``."""
        from loopscope_app.command.loop_tests.expectations import parse_ended

        self._expect(parse_ended(address, endings))

    def branch(self, address: str, branches: str) -> None:
        """Expect the branches of an If: ``"ETTE"``, ``"then"``, or ``"then >= 20%"``."""
        from loopscope_app.command.loop_tests.expectations import parse_branch

        self._expect(parse_branch(address, branches))

    def drift(
        self,
        *,
        at_most: float,
        against: str = "",
        round: str = "",
        match: str = "",
        align: str = "",
    ) -> None:
        """Expect a largest relative error of the outputs against a runtime, a model, a trace, or
        the same model with rounding. ``match`` and ``align`` are those of ``loopscope drift``.
        """
        from loopscope_app.command.loop_tests.expectations import parse_drift

        values = {"against": against, "round": round, "match": match, "align": align}
        table = {key: value for key, value in values.items() if value}
        self._expect(parse_drift({**table, "at_most": at_most}))

    def same_control_flow_as(self, model: str) -> None:
        """Expect equal iteration counts, endings and branches in another model."""
        from loopscope_app.command.loop_tests.expectations import parse_same_control_flow

        self._expect(parse_same_control_flow(model))

    def check(self, level: str = "no warnings") -> None:
        """Expect no problems: ``"no errors"``, ``"no warnings"``, or ``"no LS906"``."""
        from loopscope_app.command.loop_tests.expectations import parse_check

        self._expect(parse_check(level))

    def finite(self) -> None:
        """Expect no NaN and no infinity in any value."""
        from loopscope_app.command.loop_tests.expectations import ExpectedFinite

        self._expect(ExpectedFinite())

    def _expect(self, expectation: Expectation) -> None:
        __tracebackhide__ = True
        from loopscope.errors import EngineError

        outcome = self._verifier.outcome(expectation)
        if outcome.state == "error":
            raise EngineError(outcome.reason)
        if outcome.state == "failed":
            raise AssertionError(f"{outcome.expectation}: {outcome.reason}")


@pytest.fixture
def loopscope(request: pytest.FixtureRequest) -> Callable[..., VerifiedRun]:
    """Return a function that runs a model on inputs and returns the run, to be verified.

    Paths are relative to the folder of the test. Inputs are those of ``loopscope run --inputs``.
    """
    folder = Path(str(request.path)).parent

    def run(model: str | Path, inputs: str | Path = "") -> VerifiedRun:
        return VerifiedRun(model, inputs, folder)

    return run


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> pytest.Collector | None:
    """Collect the tests of a file with the name ``loops.toml``."""
    if file_path.name != _FILE:
        return None
    collector: pytest.Collector = LoopsFile.from_parent(parent, path=file_path)
    return collector


class LoopsFile(pytest.File):
    """A file of tests."""

    def collect(self) -> Iterator[pytest.Item]:
        from loopscope.errors import EngineError
        from loopscope_app.command.loop_tests.file import read_tests

        try:
            tests = read_tests(self.path)
        except EngineError as error:
            raise self.CollectError(str(error)) from None
        for test in tests:
            yield LoopsItem.from_parent(self, name=test.name, test=test)


class LoopsItem(pytest.Item):
    """One test of a file."""

    def __init__(self, *, test: LoopTest, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._test = test

    def runtest(self) -> None:
        from loopscope_app.command.loop_tests.command import result_of

        outcomes = result_of(self._test, _SECONDS).outcomes
        wrong = [outcome for outcome in outcomes if outcome.state != "passed"]
        if wrong:
            raise AssertionError(
                "\n".join(f"{outcome.expectation}: {outcome.reason}" for outcome in wrong)
            )

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any) -> str:
        return str(excinfo.value)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name
