"""What was committed, out of logs of which none is the truth."""

from __future__ import annotations

from nemesis.history.zookeeper_ensemble import merge
from nemesis.history.zookeeper_log import LogContents, Transaction


def entry(epoch: int, count: int, checksum: int = 7) -> Transaction:
    return Transaction(1, 1, (epoch << 32) + count, 0, 5, checksum)


def epoch(number: int, last: int, first: int = 1) -> list[Transaction]:
    return [entry(number, count) for count in range(first, last + 1)]


def member(log: list[Transaction], current_epoch: int | None = None) -> LogContents:
    return LogContents(log, [], current_epoch)


def test_a_quorum_decides_what_was_committed() -> None:
    ahead = member([entry(1, 1), entry(1, 2), entry(1, 3)], 1)
    other = member([entry(1, 1), entry(1, 2, checksum=8)], 1)
    short = member([entry(1, 1), entry(1, 2, checksum=8)], 1)
    merged = merge([ahead, other, short])
    assert merged.transactions == [entry(1, 1), entry(1, 2, checksum=8)]
    assert merged.problems == []


def test_a_standalone_server_decides_alone() -> None:
    assert merge([member(epoch(0, 3))]).transactions == epoch(0, 3)


def test_what_only_the_next_leader_had_logged_is_committed_with_its_epoch() -> None:
    leader = member(epoch(1, 4) + epoch(2, 2), 2)
    sent_a_snapshot = member(epoch(1, 2) + epoch(2, 2), 2)
    away = member(epoch(1, 3), 1)
    merged = merge([leader, sent_a_snapshot, away])
    assert merged.transactions == epoch(1, 4) + epoch(2, 2)
    assert merged.problems == []


def test_what_a_deposed_leader_had_logged_alone_is_not_committed() -> None:
    """It was sent a snapshot, which left its log as it was; what it missed says so, whether more came or not."""
    history = epoch(3, 5) + epoch(4, 9) + epoch(5, 1)
    others = [member(history, 5) for _ in range(2)]
    for later in (epoch(4, 9, first=6) + epoch(5, 1), epoch(5, 1), []):
        merged = merge([member(epoch(3, 11) + later, 5), *others])
        assert merged.transactions == history
        assert merged.problems == []


def test_a_deposed_leader_that_never_came_back_is_not_believed() -> None:
    deposed = member(epoch(1, 5), 1)
    others = [member(epoch(1, 2) + epoch(2, 1), 2) for _ in range(2)]
    assert merge([deposed, *others]).transactions == epoch(1, 2) + epoch(2, 1)


def test_a_zxid_that_no_member_has_is_a_problem() -> None:
    members = [member(epoch(1, 2) + epoch(1, 6, first=5), 1) for _ in range(3)]
    assert merge(members).problems == [
        "the transaction logs of ZooKeeper lack zxid 0x100000003 to 0x100000004"
    ]


def test_what_is_wrong_with_one_member_is_told() -> None:
    damaged = LogContents(epoch(1, 1), ["it is damaged"], 1)
    assert merge([damaged, member(epoch(1, 2), 1), member(epoch(1, 2), 1)]).problems == [
        "it is damaged"
    ]
