"""What the members of a ZooKeeper ensemble have committed, out of their transaction logs.

None of the logs is the truth. A leader that is cut off logs what it never gets a majority for. When it comes back it is
told to cut its log, or is sent a snapshot, and then its log stays as it was. A member that was away for long is sent a
snapshot, too, and its log has a gap. And what only a leader had logged is committed all the same once it leads again:
whoever follows takes its history over, as a difference, which is logged, or as a snapshot, which is not.

Found in the sources of ZooKeeper 3.9 (``LearnerHandler``, ``Learner``) and in real logs.

Limit: what only a leader had logged is missed if all others were sent snapshots, and itself another one later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from nemesis.history.zookeeper_log import EPOCH_BITS, LogContents, Transaction


def merge(members: Sequence[LogContents]) -> LogContents:
    """Return what a standalone server, or all members of an ensemble together, have committed, in zxid order.

    Of an ensemble that is what a majority logged. And, as a leader's whole history is committed once a majority has
    taken it over: what a member had logged before the epoch that it shares with a majority. But not if it lacks
    something later that a majority logged: then it was away and was sent a snapshot, and its log still has what it
    had to give up.

    The problems are those of the members, and zxids that nobody has.
    """
    transactions = members[0].transactions if len(members) == 1 else _committed(members)
    problems = [problem for member in members for problem in member.problems]
    problems += [
        f"the transaction logs of ZooKeeper lack zxid {first:#x} to {last:#x}"
        for first, last in _gaps(transactions)
    ]
    return LogContents(transactions, problems)


def _committed(members: Sequence[LogContents]) -> list[Transaction]:
    majority = len(members) // 2 + 1
    entries = [set(member.transactions) for member in members]
    count = Counter((entry.zxid, entry.checksum) for log in entries for entry in log)
    chosen = {
        entry.zxid: entry
        for log in entries
        for entry in log
        if count[entry.zxid, entry.checksum] >= majority
    }
    for entry in _taken_over(members, frozenset(chosen)):
        chosen.setdefault(entry.zxid, entry)
    return [chosen[zxid] for zxid in sorted(chosen)]


def _taken_over(members: Sequence[LogContents], committed: frozenset[int]) -> Iterator[Transaction]:
    """Yield what the members in the newest epoch of a majority brought along, if nothing speaks against it."""
    epochs = sorted((member.current_epoch or 0 for member in members), reverse=True)
    epoch = epochs[len(members) // 2]
    for member in members:
        if member.current_epoch == epoch:
            own = {entry.zxid for entry in member.transactions}
            missed = max(committed - own, default=0)
            for entry in member.transactions:
                if missed < entry.zxid < epoch << EPOCH_BITS:
                    yield entry


def _gaps(transactions: Sequence[Transaction]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last zxid of each gap."""
    previous = 0
    for entry in transactions:
        expected = _next(previous, entry)
        if entry.zxid != expected:
            yield expected, entry.zxid - 1
        previous = entry.zxid


def _next(zxid: int, entry: Transaction) -> int:
    """Return the zxid that ``entry`` must have to follow: inside an epoch (the upper half) they count from 1."""
    same_epoch = entry.zxid >> EPOCH_BITS == zxid >> EPOCH_BITS
    return zxid + 1 if same_epoch else (entry.zxid >> EPOCH_BITS << EPOCH_BITS) + 1
