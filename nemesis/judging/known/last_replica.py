"""KIP-966, "last replica standing": an ISR shrinks to one replica, and its machine loses what was not synced.

Kafka acknowledges what is written and not what is synced, and trusts the ISR: the replica comes back with less, leads
again, and the others cut their logs to match, although they still had the records. ``min.insync.replicas`` does not
help, because it is asked for when records are written. If all brokers were down, and no controller saw the death, the
replica even leads on in the same leader epoch: the others find no difference and keep other records at the same
offsets. Kafka with ZooKeeper has this to its end; with KRaft, eligible leader replicas are the answer, from 4.0 on.

Evidence: a power cut or a damaged log that does not spare the last replica (``spares_last: false``) lists the
partitions for which it was that, and its effect was measured: the disk lost something. A finding is an instance if it
is about such a partition, and

* it sets something that was so before the loss, an acknowledgement, say, against something that was so afterwards.
  What was acknowledged after the loss and is gone is not excused, nor what was wrong already before it; or
* ``final-logs``: it compares files at the end, and the name of the topic stands for one topic only. Files do not show
  when a record was written.

``poll-skip``, ``withheld`` and so on are not on the list: no client skips, and no broker holds back, a record because
a log is shorter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nemesis.checkers.framework.model import Finding
from nemesis.history.vocabulary.faults import LAST_IN_ISR
from nemesis.judging.known.behaviour import AppliedFault, Evidence, KnownBehaviour, Test

_COMPARES_FILES: Final = "final-logs"
_OF_LOSSES: Final = {
    "client-offsets-grow": "the latest-offset of",
    "stale-read-above-hw": "vanished",
}
"""Properties that break in other ways, too: what is in the sentence if a shorter log leads to it."""
_LOSSES: Final = ("lost_bytes", "lost_names", "damaged")


def test_of(evidence: Evidence) -> Test:
    """Return the test of this run's findings."""
    losses = _losses(evidence.applied_faults)
    renamed = evidence.deleted_topics

    def is_instance(finding: Finding) -> bool:
        if _OF_LOSSES.get(finding.property, "") not in finding.sentence:
            return False
        faults = losses.get(finding.key, [])
        if finding.property == _COMPARES_FILES and finding.key.rpartition("-")[0] not in renamed:
            return any(_is_after(finding, fault) for fault in faults)
        return any(_is_about_both_sides(finding, fault) for fault in faults)

    return is_instance


def _losses(faults: Sequence[AppliedFault]) -> Mapping[str, list[AppliedFault]]:
    """Return the faults that took something from the last replica of an ISR, by partitions."""
    losses: dict[str, list[AppliedFault]] = defaultdict(list)
    for fault in faults:
        listed = fault.intent.get(LAST_IN_ISR)
        if isinstance(listed, list) and any(map(_has_lost, fault.measured.values())):
            for partition in listed:
                losses[str(partition)].append(fault)
    return losses


def _has_lost(measured: Any) -> bool:
    return isinstance(measured, dict) and any(measured.get(name) for name in _LOSSES)


def _is_after(finding: Finding, loss: AppliedFault) -> bool:
    return max(_times(finding), default=-1) >= loss.began_ns


def _is_about_both_sides(finding: Finding, loss: AppliedFault) -> bool:
    times = _times(finding)
    return bool(times) and min(times) <= loss.applied_ns and max(times) >= loss.began_ns


def _times(finding: Finding) -> list[int]:
    """The times of the proving events; what only ZooKeeper's log has is without."""
    times = [int(event.get("time", -1)) for event in finding.events]
    return [time for time in times if time >= 0]


LAST_REPLICA: Final = KnownBehaviour(
    reference="KIP-966",
    reason="the last replica in the ISR died and lost acknowledged records that it had not synced; it leads again, "
    "and the others follow it",
    first=(3, 3),
    last=(3, 9),
    properties=frozenset(
        {
            *("lost-write", "unseen", "inconsistent-offset", "stale-read-above-hw"),
            *("nonmonotonic-send", "nonmonotonic-poll", "client-offsets-grow"),
            *("no-truncation-below-hw", "leader-completeness", "hw-grows", "hw-sampled"),
            *("log-matching", _COMPARES_FILES),
        }
    ),
    test=test_of,
)
