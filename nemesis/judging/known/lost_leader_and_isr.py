"""A suspected bug of Kafka 3.9.1 with ZooKeeper: a session that ends while a log is created keeps a broker out of ISRs.

docs/kafka.md tells the story under "Suspected bugs of Kafka": a LeaderAndIsr request fails as a whole, because one log
cannot be created, and is not sent again.

Evidence, in a broker's log: a LeaderAndIsr request failed with a ``KeeperException``, or, after that, because a log is
not available. The partitions in it are those, until the broker takes a role in them or starts again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from nemesis.checkers.framework.model import Finding
from nemesis.judging.known.behaviour import Evidence, KnownBehaviour

_FAILED: Final = "Unexpected error handling request RequestHeader(apiKey=LEADER_AND_ISR"
_STATE: Final = re.compile(r"LeaderAndIsrPartitionState\(topicName='([^']+)', partitionIndex=(\d+)")
_KEEPER: Final = "org.apache.zookeeper.KeeperException"
_NO_LOG: Final = "org.apache.kafka.common.errors.NotLeaderOrFollowerException"
_ROLE: Final = re.compile(
    r"\] (?:Leader|Follower) (\S+) (?:with topic id \S+ )?starts at leader epoch"
)
_START: Final = "INFO starting (kafka.server.KafkaServer)"
_OUT_OF_ISR: Final = re.compile(r"its ISR is \[[\d, ]*\], its replicas are \[[\d, ]*\]")
_NO_REPLICA: Final = "has no log of it"


def without_role(lines: Iterable[str]) -> frozenset[str]:
    """Return the partitions whose last LeaderAndIsr request failed so, by a broker's log."""
    lost: set[str] = set()
    has_begun = False
    for line, after in pairwise([*lines, ""]):
        if _START in line:
            lost, has_begun = set(), False
        elif _FAILED in line:
            has_begun = has_begun or after.startswith(_KEEPER)
            if has_begun and after.startswith((_KEEPER, _NO_LOG)):
                lost.update(f"{topic}-{number}" for topic, number in _STATE.findall(line))
        elif taken := _ROLE.search(line):
            lost.discard(taken[1])
    return frozenset(lost)


def _partitions(evidence: Evidence) -> frozenset[str]:
    lost: frozenset[str] = frozenset()
    for file in evidence.broker_logs():
        with file.open(encoding="utf-8", errors="replace") as lines:
            lost |= without_role(lines)
    return lost


def _is_shown_by(finding: Finding) -> bool:
    return bool(_OUT_OF_ISR.search(finding.sentence)) or _NO_REPLICA in finding.sentence


LOST_LEADER_AND_ISR: Final = KnownBehaviour(
    reference="docs/kafka.md, suspected bugs of Kafka",
    reason="a LeaderAndIsr request failed as a whole because a session ended while a log was created, and it is not "
    "sent again",
    first=(3, 9, 1),
    last=(3, 9, 1),
    properties=frozenset({"convergence", "reassignment"}),
    partitions=_partitions,
    is_shown_by=_is_shown_by,
    is_documented=False,
)
