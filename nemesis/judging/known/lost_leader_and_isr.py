"""A suspected bug of Kafka 3.9.1 with ZooKeeper: a session that ends while a log is created keeps a broker out of ISRs.

docs/kafka.md tells the story under "Suspected bugs of Kafka": a LeaderAndIsr request fails as a whole, because one log
cannot be created, and is not sent again.

Evidence, in a broker's log: a LeaderAndIsr request failed with a ``KeeperException``, or, after that, because a log is
not available. The partitions in it are those, until the broker takes a role in them or starts again. A finding is an
instance if every replica that is missing in it, in the ISR or on the disk, is on such a broker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from nemesis.checkers.framework.model import Finding
from nemesis.judging.known.behaviour import Evidence, KnownBehaviour, Test
from nemesis.support.node_names import node_of

_FAILED: Final = "Unexpected error handling request RequestHeader(apiKey=LEADER_AND_ISR"
_STATE: Final = re.compile(r"LeaderAndIsrPartitionState\(topicName='([^']+)', partitionIndex=(\d+)")
_KEEPER: Final = "org.apache.zookeeper.KeeperException"
_NO_LOG: Final = "org.apache.kafka.common.errors.NotLeaderOrFollowerException"
_ROLE: Final = re.compile(
    r"\] (?:Leader|Follower) (\S+) (?:with topic id \S+ )?starts at leader epoch"
)
_START: Final = "INFO starting (kafka.server.KafkaServer)"
_OUT_OF_ISR: Final = re.compile(r"its ISR is \[([\d, ]*)\], its replicas are \[([\d, ]*)\]")
_NO_REPLICA: Final = re.compile(r"At the end (broker-\d+), a replica of \S+, has no log of it")


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


def test_of(evidence: Evidence) -> Test:
    """Return the test of this run's findings."""
    lost: dict[str, frozenset[str]] = {}
    for node, file in evidence.broker_logs():
        with file.open(encoding="utf-8", errors="replace") as lines:
            lost[node] = without_role(lines)

    def is_instance(finding: Finding) -> bool:
        missing = missing_replicas(finding)
        return bool(missing) and all(finding.key in lost.get(node, ()) for node in missing)

    return is_instance


def missing_replicas(finding: Finding) -> frozenset[str]:
    """Return the brokers that a finding misses in an ISR, or whose log it misses; empty for other findings."""
    if out_of_isr := _OUT_OF_ISR.search(finding.sentence):
        isr, replicas = (set(re.findall(r"\d+", listed)) for listed in out_of_isr.groups())
        return frozenset(node_of(int(broker)) for broker in replicas - isr)
    without_log = _NO_REPLICA.search(finding.sentence)
    return frozenset() if without_log is None else frozenset({without_log[1]})


LOST_LEADER_AND_ISR: Final = KnownBehaviour(
    reference="docs/kafka.md, suspected bugs of Kafka",
    reason="a LeaderAndIsr request failed as a whole because a session ended while a log was created, and it is not "
    "sent again",
    first=(3, 9, 1),
    last=(3, 9, 1),
    properties=frozenset({"convergence", "reassignment"}),
    test=test_of,
    is_documented=False,
)
