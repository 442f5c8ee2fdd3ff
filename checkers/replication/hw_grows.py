"""The high watermark of a leader never goes back.

* **hw-grows**: the high watermark of one leader, in one process life and one leader epoch, never falls.
  Smallest break: 5, then 4.

The idea: of each segment of a leader's high watermarks the first, the highest and the first fall are enough to tell
where the whole first fell, so it is a ``Fold``.

What a correct cluster does and is not convicted for: a follower's own high watermark may fall; a restarted leader
starts from an older checkpoint (another process life).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nemesis.checkers.breaks import replicas as breaks
from nemesis.checkers.explain import replicas
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Fold, Results, conclude
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource

LeaderKey = tuple[str | None, str | None, int | None, int, int, int]
"""Topic, topic id, partition, broker, incarnation, leader epoch."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One leader's high watermarks: the first, the highest, and the first fall if there was one."""

    first: tuple[int, int]
    """(high watermark, row)"""
    highest: tuple[int, int]
    fall: tuple[tuple[int, int], tuple[int, int]] | None = None
    """(the highest before, the value that is below it)"""


GrowthSummary = tuple[int, dict[LeaderKey, Growth]]


class HwGrows(Fold[GrowthSummary]):
    kinds = frozenset({Kind.HIGH_WATERMARK})
    columns = (
        "topic",
        "topic_id",
        "partition",
        "node",
        "incarnation",
        "leader_epoch",
        "high_watermark",
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (HW_GROWS,)

    def reduce(self, segment: Segment) -> GrowthSummary:
        leaders: dict[LeaderKey, Growth] = {}
        keys = ("topic", "topic_id", "partition", "node", "incarnation", "leader_epoch")
        for key, part in segment.by(*keys):
            marks, rows = part.numbers("high_watermark"), part.rows
            highest = np.maximum.accumulate(marks)
            fallen = np.flatnonzero(marks < highest)
            top = int(np.argmax(marks))
            fall = None
            if len(fallen):
                low = int(fallen[0])
                peak = int(np.argmax(marks[:low]))
                fall = ((int(marks[peak]), int(rows[peak])), (int(marks[low]), int(rows[low])))
            leaders[key] = Growth(
                first=(int(marks[0]), int(rows[0])),
                highest=(int(marks[top]), int(rows[top])),
                fall=fall,
            )
        return len(segment), leaders

    def combine(self, a: GrowthSummary, b: GrowthSummary) -> GrowthSummary:
        leaders = dict(a[1])
        for key, later in b[1].items():
            leaders[key] = _chain(leaders[key], later) if key in leaders else later
        return a[0] + b[0], leaders

    def finish(self, summary: GrowthSummary) -> Results:
        checked, leaders = summary
        findings = []
        for (topic, _, partition, node, _, epoch), growth in leaders.items():
            if growth.fall is not None:
                (high, high_row), (low, low_row) = growth.fall
                tp = tp_name(topic, partition)
                sentence = (
                    f"The high watermark of {tp} fell from {high} to {low} at leader {node} within leader epoch "
                    f"{epoch}."
                )
                findings.append(finding(self.name, tp, sentence, high_row, low_row))
        return conclude(HW_GROWS, checked=checked, findings=findings)


def _chain(a: Growth, b: Growth) -> Growth:
    """Join two neighbouring segments of one leader. The first fall of both is the first of the whole, and it is from
    the row that was the first so high.
    """
    fall = a.fall
    if fall is None and b.first[0] < a.highest[0]:
        fall = (a.highest, b.first)
    elif fall is None and b.fall is not None:
        peak, low = b.fall
        fall = (a.highest if a.highest[0] == peak[0] else peak, low)
    highest = b.highest if b.highest[0] > a.highest[0] else a.highest
    return Growth(first=a.first, highest=highest, fall=fall)


HW_GROWS: Final = Property(
    name="hw-grows",
    promise="Within one leader epoch the high watermark never falls.",
    unit="high watermarks",
    unknown="No leader traced a high watermark.",
    source="Partition.maybeIncrementLeaderHW.",
    check=HwGrows,
    decided_from=frozenset({EventSource.TRACES}),
    stand_ins=frozenset({EventSource.BROKER_LOGS}),
    reason=replicas.hw_grows,
    breaks=breaks.HW_GROWS,
)
