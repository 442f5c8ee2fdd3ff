"""Consumers are given what is in the leader's log, committed or not.

A record above the high watermark may vanish with the leader's next truncation, and a consumer has acted on it. So it
went where a fetch raced with a truncation of the leader's log (KAFKA-9835, up to 2.5.0, mended in 2.5.1).

Must be caught by: stale-read-above-hw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.model import FetchIsolation


def _to_the_end(correct: Any) -> Callable[..., Any]:
    def read(log: Any, _isolation: Any, *arguments: Any, **options: Any) -> Any:
        return correct(log, FetchIsolation.LOG_END, *arguments, **options)

    return read


MUTANT = Mutant(
    name="read-above-hw",
    property="stale-read-above-hw",
    summary="consumers read above the high watermark (KAFKA-9835)",
    replacements=(Replacement("nemesis.reference.cluster.partition_reads", "_read", _to_the_end),),
)
