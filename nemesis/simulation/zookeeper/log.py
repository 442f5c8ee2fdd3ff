"""What a member keeps on its disk, and what all of them agreed on.

ZooKeeper syncs its log before it acknowledges, so a member's disk loses nothing by a kill or a power cut. A *position*
is the last zxid of a log, or the begin of the epoch that it has followed since (``epoch << 32``) if that is newer:
comparing positions compares (epoch, zxid) as ZooKeeper's election does.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from nemesis.history.zookeeper_log import EPOCH_BITS, Transaction

NOTHING: Final = 0


@dataclass(slots=True)
class MemberDisk:
    """Outlives the member's lives. Epochs are those of ZooKeeper's ``acceptedEpoch`` and ``currentEpoch`` files."""

    accepted_epoch: int = 0
    """Promised: no older leader is followed."""
    current_epoch: int = 0
    """Of the leader whose history this log has taken over."""
    incarnations: int = 0
    entries: list[Transaction] = field(default_factory=list)

    @property
    def last_zxid(self) -> int:
        return self.entries[-1].zxid if self.entries else NOTHING

    @property
    def position(self) -> int:
        return max(self.last_zxid, self.current_epoch << EPOCH_BITS)

    def epoch_ends(self) -> dict[int, int]:
        """Return the last zxid of each epoch in the log."""
        return {entry.zxid >> EPOCH_BITS: entry.zxid for entry in self.entries}

    def common_zxid(self, epoch_ends: dict[int, int]) -> int:
        """Return the last zxid up to which another log is the same.

        Whoever holds an entry of an epoch had its leader's whole history before it, so two logs agree up to the shorter
        of the last epoch that both know.
        """
        own = self.epoch_ends()
        shared = [min(own[epoch], end) for epoch, end in epoch_ends.items() if epoch in own]
        return max(shared, default=NOTHING)

    def after(self, zxid: int) -> Sequence[Transaction]:
        """Return the entries behind a zxid."""
        return self.entries[self.count_to(zxid) :]

    def cut_after(self, zxid: int) -> None:
        """Forget the entries behind a zxid."""
        del self.entries[self.count_to(zxid) :]

    def count_to(self, zxid: int) -> int:
        """Return how many entries there are up to a zxid."""
        return bisect_right(self.entries, zxid, key=lambda entry: entry.zxid)


class CommittedLog:
    """Everything that was ever committed, in order, as an observer outside of the system sees it.

    It also watches over the simulated quorum itself: two members that apply different histories are our own bug.
    """

    def __init__(self) -> None:
        self.transactions: list[Transaction] = []
        self._times: list[float] = []

    def observe(self, index: int, transaction: Transaction) -> None:
        """A member applies its ``index``-th transaction. Raises AssertionError when another one applied another."""
        if index == len(self.transactions):
            self.transactions.append(transaction)
            self._times.append(asyncio.get_running_loop().time())
            return
        known = self.transactions[index]
        assert known.zxid == transaction.zxid, (
            f"the simulated ensemble disagrees with itself: number {index} is {known.zxid:#x} and {transaction.zxid:#x}"
        )

    def has_news_for(self, applied: int, age_s: float) -> bool:
        """Whether a member that has applied so many lacks one that is older than ``age_s``."""
        if applied >= len(self._times):
            return False
        return asyncio.get_running_loop().time() - self._times[applied] > age_s
