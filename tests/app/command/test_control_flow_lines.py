"""The lines in which ``loopscope run`` tells what loops and branches did."""

from __future__ import annotations

from loopscope.timeline import ControlFlowRecord
from loopscope_app.command.report import control_flow_lines

NEITHER = "its condition was false before the first iteration (35), its condition became false (35)"


def loop(address: str, count: int) -> ControlFlowRecord:
    return ControlFlowRecord(
        address=address,
        kind="Loop",
        iterations=count,
        ended_by="condition" if count else "initial_condition",
    )


def test_one_line_for_each_however_often_it_ran() -> None:
    records = [loop("main/a", 70)]
    for number in range(70):
        records.append(loop(f"main/a[{number}]/body/b", number % 2))
        records.append(
            ControlFlowRecord(
                address=f"main/a[{number}]/body/c", kind="If", branch="then" if number else "else"
            )
        )
    records.append(ControlFlowRecord(address="main/d", kind="If", branch="else"))
    assert list(control_flow_lines(records)) == [
        "  main/a: 70 iterations, then its condition became false",
        f"    main/a/body/b: 70 executions with 0 to 1 iteration, 35 in all; {NEITHER}",
        f"    main/a/body/c: then 69 times, else 1 time: E{'T' * 47}...",
        "  main/d: took else",
    ]


def test_functions_are_called() -> None:
    """A function has no iterations, and a call in a body does not run on."""
    records = [ControlFlowRecord(address="main/f", kind="Function"), loop("main/a", 2)]
    records += [
        ControlFlowRecord(address=f"main/a[{number}]/body/g", kind="Function")
        for number in range(2)
    ]
    assert list(control_flow_lines(records)) == [
        "  main/f: called once",
        "  main/a: 2 iterations, then its condition became false",
        "    main/a/body/g: called 2 times",
    ]


def test_names_of_a_file_do_nothing_to_the_terminal() -> None:
    (line,) = control_flow_lines([loop("main/\x1b[31mred", 2)])
    assert "\x1b" not in line


def test_of_very_many_loops_the_first_are_told() -> None:
    lines = list(control_flow_lines([loop(f"main/loop_{number}", 1) for number in range(50)]))
    assert len(lines) == 41
    assert lines[-1] == "  ... and 10 more loops and branches (all of them with --json)"
