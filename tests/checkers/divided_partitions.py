"""Judging the partitions of a history in pieces, however small they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from nemesis.checkers.framework import rounds
from nemesis.checkers.framework.model import Result
from nemesis.checkers.log import (
    ClientLog,
    certificate,
    client_log,
    sections,
)
from nemesis.checkers.log import (
    offset_cells as whereabouts,
)
from nemesis.history.events import Event
from tests.checkers.histories import judge

WALKED, PARTITIONED = 10**9, 0


def results(events: Iterable[Event], cut: Sequence[int], large: int) -> dict[str, Result]:
    check = ClientLog()
    check.large = large  # type: ignore[misc]
    return judge(check, events, cut)


@contextmanager
def small_cells(bits: int) -> Iterator[list[object]]:
    """Cells of a few offsets; yields what was walked from end to end after all."""
    walked: list[object] = []
    with pytest.MonkeyPatch.context() as patch:

        def at_once(*arguments: Any) -> Any:
            walked.append(arguments[1])
            return original(*arguments)

        original = rounds.at_once
        patch.setattr(whereabouts, "CELL_BITS", bits)
        patch.setattr(certificate, "CELL_BITS", bits)
        patch.setattr(sections, "CELL_BITS", bits)
        patch.setattr(client_log, "at_once", at_once)
        yield walked
