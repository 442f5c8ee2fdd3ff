"""Histories of an honest cluster: chosen steps, or steps weighted as brokers take them."""

from __future__ import annotations

from hypothesis import strategies as st

from nemesis.checkers import CHECKERS
from nemesis.history.events import Event
from tests.checkers.honest_cluster import HonestCluster

WEIGHTED = (
    [0] * 6
    + [1] * 8
    + [2] * 6
    + [3] * 2
    + [4] * 3
    + [5] * 2
    + [6]
    + [7] * 2
    + [8] * 3
    + [9, 10, 11]
    + [12] * 2
)
"""Actions by how often a broker does them; see ``HonestCluster.step``."""

NOT_IN_THE_MODEL = frozenset(
    {
        *("convergence", "late-recovery", "fault-effect", "office-kept"),
        *("dead-brokers-replaced", "elections-answered", "notifications-handled"),
        *("isr-shrinks-in-time", "leaders-balanced", "log-dir-failures-handled"),
        *("settings-take-effect", "retention-runs", "controller-elected-in-time"),
        *("one-quorum-leader", "quorum-commits-stay"),
        *("one-owner-per-generation", "generation-grows", "fenced-member"),
        *("offsets-read-as-committed", "group-progress", "rebalances-end", "membership-kept"),
        *("marker-epoch-grows", "torn-markers", "markers-kept", "hanging-transaction"),
        *("aborted-read", "read-beyond-lso", "torn-transaction", "fenced-producer"),
        *("exactly-once", "transaction-order"),
        *("producer-epoch-kept", "transactions-possible", "last-stable-offset-at-rest"),
        *(
            "log-files-agree",
            "segments-roll",
            "compaction-runs",
            "tombstones-kept",
            "checkpoints-kept",
            "times-answered",
            "jobs-on-time",
            "requests-answered",
            "segments-deleted-by-rule",
            "log-dir-moves-end",
            "hw-follows-isr",
            "clean-stop-keeps-logs",
        ),
    }
)
"""The harness's own, and what the honest cluster leaves out: dead members of an ISR, the end of ``/controller``,
time, settings, clean stops, a KRaft quorum, groups of consumers, transactions."""

JUDGED = [name for name in CHECKERS if name not in NOT_IN_THE_MODEL]

steps = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 3)), max_size=60)

cuts = st.lists(st.integers(0, 10_000), max_size=5)


def honest_history(taken: list[tuple[int, int]]) -> list[Event]:
    cluster = HonestCluster()
    # A partition with a leader, followers and a few committed records; one follower has left the ISR and joined again.
    leads = [(2, 1), (2, 2), (2, 3), (0, 1), (1, 2), (1, 3)]
    leaves = [(0, 1), (3, 1), (4, 1)]
    joins = [(1, 2), (1, 3), (1, 2), (1, 3), (3, 1), (4, 1), (5, 1)]
    for action, node in leads + leaves + joins:
        cluster.step(action, node)
    for action, node in taken:
        cluster.step(action, node)
    return cluster.finish()
