"""Progress without a terminal: plain lines, few of them."""

from __future__ import annotations

import io

from rich.console import Console

from nemesis.progress import Progress, Status, line


def test_a_line_says_phase_rate_controller_and_faults() -> None:
    status = Status(
        phase="faults",
        elapsed_s=12.3,
        operations=4200,
        operations_per_s=351.4,
        controller="2",
        controller_epoch=3,
        faults=["pause broker-1"],
    )
    assert line(status) == (
        " 12.3 s  faults: 4200 operations, 351/s; controller 2 (epoch 3); in force: pause broker-1"
    )


def test_a_pipe_gets_a_line_for_each_phase_and_not_for_each_look() -> None:
    written = io.StringIO()
    with Progress(Console(file=written)) as progress:
        for phase in ("warm-up", "warm-up", "warm-up", "faults", "faults"):
            progress.show(Status(phase=phase))
    assert [text.split()[2] for text in written.getvalue().splitlines()] == ["warm-up:", "faults:"]
