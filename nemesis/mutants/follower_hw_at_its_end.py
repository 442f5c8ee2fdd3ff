"""A follower takes all that it has fetched for committed.

Its high watermark is its leader's, bounded by its own end. A follower that takes its own end instead gives consumers
(KIP-392) what the other members of the ISR need not have, and says in the answer that it is committed. As the next
leader it begins with that high watermark, too.

Must be caught by: stale-read-above-hw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _at_its_end(correct: Any) -> Callable[..., None]:
    def append_as_follower(self: Any, records: bytes, *of_the_leader: int) -> None:
        correct(self, records, *of_the_leader)
        if records:
            self.log.update_high_watermark(self.log.log_end_offset)
            self._on_progress(self.topic_partition)

    return append_as_follower


MUTANT = Mutant(
    name="follower-hw-at-its-end",
    property="stale-read-above-hw",
    summary="a follower's high watermark is its own log end offset instead of its leader's high watermark",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.local_replica",
            "LocalReplica.append_as_follower",
            _at_its_end,
        ),
    ),
)
