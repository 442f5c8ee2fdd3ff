"""KIP-966, "last replica standing": an ISR shrinks to one replica, and its machine loses what was not synced.

Kafka acknowledges what is written and not what is synced, and trusts the ISR: the replica comes back with less, leads
again, and the others cut their logs to match, although they still had the records. ``min.insync.replicas`` does not
help, because it is asked for when records are written. If all brokers were down, and no controller saw the death, the
replica even leads on in the same leader epoch: the others find no difference and keep other records at the same
offsets. Kafka with ZooKeeper has this to its end; with KRaft, eligible leader replicas are the answer.

Evidence: a power cut or a damaged log that does not spare the last replica (``spares_last: false``) lists the
partitions for which it was that.
"""

from __future__ import annotations

from typing import Final

from nemesis.faults.unsynced_writes import LAST_IN_ISR
from nemesis.judging.known.behaviour import Evidence, KnownBehaviour, detail_of


def _partitions(evidence: Evidence) -> frozenset[str]:
    listed = (detail_of(event).get(LAST_IN_ISR) for event in evidence.begun_faults)
    return frozenset(str(name) for names in listed if isinstance(names, list) for name in names)


LAST_REPLICA: Final = KnownBehaviour(
    reference="KIP-966",
    reason="the last replica in the ISR lost its power, and with it acknowledged records that it had not synced; it "
    "leads again, and the others follow it",
    first=(3, 3),
    last=(3, 9),
    properties=frozenset(
        {
            *("lost-write", "unseen", "withheld", "inconsistent-offset", "stale-read-above-hw"),
            *("nonmonotonic-send", "nonmonotonic-poll", "poll-skip", "client-offsets-grow"),
            *("no-truncation-below-hw", "leader-completeness", "hw-grows", "hw-sampled"),
            *("log-matching", "final-logs"),
        }
    ),
    partitions=_partitions,
)
