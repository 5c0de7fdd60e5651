"""What is damaged: models, or files of data of one kind. Both give cases by seed and number, and
go through them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.fuzz.cases import Case, Originals, case_of, originals
from tests.fuzz.data_damage import damaged
from tests.fuzz.data_files import DATA, DataKind
from tests.fuzz.stages import STAGES, go_through


class Subject(Protocol):
    """Cases, and what they go through."""

    @property
    def stages(self) -> Sequence[str]: ...

    def case(self, seed: int, number: int) -> Case: ...

    def go(self, case: Case, tell: Callable[[int], None], share: float) -> None:
        """``tell`` hears the number of each stage before it begins; what is raised is no
        ``EngineError``.
        """


@dataclass(frozen=True, slots=True)
class Models:
    """Models through all stages."""

    sound: Originals

    @property
    def stages(self) -> Sequence[str]:
        return [stage.name for stage in STAGES]

    def case(self, seed: int, number: int) -> Case:
        return case_of(self.sound, seed, number)

    def go(self, case: Case, tell: Callable[[int], None], share: float) -> None:
        go_through(case.document, case.weights, case.inputs, case.dice, tell, share=share)


@dataclass(frozen=True, slots=True)
class Data:
    """Files of data of one kind, through what reads them."""

    kind: DataKind
    sound: tuple[bytes, ...] = field(repr=False)

    @property
    def stages(self) -> Sequence[str]:
        return [self.kind.name]

    def case(self, seed: int, number: int) -> Case:
        dice = random.Random(f"{seed}:{number}")
        return Case(self.kind.name, damaged(dice, dice.choice(self.sound)), b"", (), dice)

    def go(self, case: Case, tell: Callable[[int], None], share: float) -> None:
        tell(0)
        self.kind.use(case.document, case.dice)


def subject(data: str, files: Sequence[Path]) -> Subject:
    """Data of a kind, or where none is named models: the files given, or samples and what is
    made up.
    """
    return Data(DATA[data], DATA[data].sound()) if data else Models(originals(files))
