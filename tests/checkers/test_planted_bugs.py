"""The honest cluster with one rule broken: the property named for the bug finds it, in one history out of a hundred."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from nemesis.checkers import CHECKERS
from nemesis.checkers.framework.model import Verdict
from tests.checkers.histories import judge
from tests.checkers.honest_cluster import NODES, Broker, HonestCluster, Order
from tests.checkers.honest_histories import WEIGHTED


class AcceptsStaleControllers(HonestCluster):
    """Brokers do not compare controller epochs."""

    def is_stale(self, broker: Broker, sequence: Order) -> bool:
        return False


class WritesUnfenced(HonestCluster):
    """A controller that lost its session writes its next election all the same."""

    def _lose_session(self, broker: Broker) -> None:
        deposed = broker.node == self.controller and broker.alive
        session = broker.session
        super()._lose_session(broker)
        if deposed and self.controller != broker.node:
            current, self.brokers[self.controller].session = (
                self.brokers[self.controller].session,
                session,
            )
            now = self.committed
            assert now is not None
            self._commit(now.leader, now.leader_epoch + 1, now.isr, strategy="offline")
            self.brokers[self.controller].session = current


class KeepsLeaderEpoch(HonestCluster):
    """An election does not raise the leader epoch."""

    def _commit(self, leader: int, leader_epoch: int, isr: Iterable[int], *, strategy: str) -> None:
        kept = 0 if self.committed is None else self.committed.leader_epoch
        super()._commit(leader, kept, isr, strategy=strategy)


class HighWatermarkIsOwnLogEnd(HonestCluster):
    """The leader's high watermark follows its own log."""

    def high_watermark_candidate(self, broker: Broker) -> int:
        return len(broker.log)


class AcknowledgesBeforeReplication(HonestCluster):
    """An acks=all produce is answered at once."""

    def is_replicated(self, broker: Broker, offset: int) -> bool:
        return True


class TruncatesToHighWatermark(HonestCluster):
    """A new follower cuts its log to its own high watermark, as before KIP-101."""

    def _follow_order(self, broker: Broker, sequence: Order) -> None:
        newer = sequence.leader_epoch > broker.leader_epoch
        super()._follow_order(broker, sequence)
        end = min(broker.high_watermark, len(broker.log))
        if newer and not broker.leads and end < len(broker.log):
            del broker.log[end:]
            self._trace(broker, "truncate", offset=end, log_end_offset=end)


def histories(cluster: type[HonestCluster], count: int) -> Iterable[HonestCluster]:
    for seed in range(count):
        rng = Random(seed)
        run = cluster()
        for _ in range(200):
            run.step(rng.choice(WEIGHTED), rng.choice(NODES))
        yield run


@pytest.mark.parametrize(
    ("bug", "name"),
    [
        (AcceptsStaleControllers, "stale-controller-fenced"),
        (WritesUnfenced, "stale-controller-fenced"),
        (KeepsLeaderEpoch, "leader-epoch-grows"),
        (HighWatermarkIsOwnLogEnd, "hw-bounded"),
        (AcknowledgesBeforeReplication, "ack-after-commit"),
        (AcknowledgesBeforeReplication, "leader-completeness"),
        (TruncatesToHighWatermark, "no-truncation-below-hw"),
    ],
)
def test_a_planted_bug_is_found_by_its_property(bug: type[HonestCluster], name: str) -> None:
    assert any(
        judge(CHECKERS[name].check(), run.events)[name].verdict == Verdict.INVALID
        for run in histories(bug, 100)
    )


@pytest.mark.parametrize("name", ["stale-controller-fenced", "hw-bounded", "leader-completeness"])
def test_the_same_steps_without_the_bug_show_nothing(name: str) -> None:
    for run in histories(HonestCluster, 12):
        assert judge(CHECKERS[name].check(), run.events)[name].findings == ()


REBOOTED_AND_ELECTED = [
    *[(2, 1), (2, 2), (2, 3)],  # all learn that 1 leads
    *[(0, 1), (1, 2), (1, 3), (1, 2), (1, 3)],  # a record is replicated and committed
    *[(6, 2), (7, 2), (8, 1), (2, 2)],  # 2 crashes with an old high watermark, comes back, follows
    *[(6, 1), (8, 3), (2, 2)],  # 1 crashes before 2 has fetched, 2 is elected
]


def test_truncating_to_the_high_watermark_loses_a_committed_record() -> None:
    """The story of KIP-101."""
    verdicts = {}
    for cluster in (TruncatesToHighWatermark, HonestCluster):
        run = cluster()
        for action, node in REBOOTED_AND_ELECTED:
            run.step(action, node)
        result = judge(CHECKERS["leader-completeness"].check(), run.events)["leader-completeness"]
        verdicts[cluster] = (result.verdict, [item.sentence for item in result.findings])
    assert verdicts == {
        HonestCluster: (Verdict.VALID, []),
        TruncatesToHighWatermark: (
            Verdict.INVALID,
            [
                (
                    "Broker 2 became leader of t-0 in leader epoch 1 with records only below 0, though all below 1 "
                    "were committed in an earlier leader epoch."
                )
            ],
        ),
    }
