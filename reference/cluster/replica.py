"""What a leader believes of one remote replica: how far it has fetched, and when it was last caught up.

A fetch at offset n says "I hold everything below n", so the fetch offset *is* the follower's log end offset. A
follower under steady load is never exactly at the leader's end, therefore it also counts as caught up, as of
its previous fetch, when it now asks for what the leader's end was then (KIP-16's rule by time).

Times are seconds of the event loop's clock; "never" is minus infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from nemesis.reference.model import UNKNOWN_BROKER_EPOCH

UNKNOWN_OFFSET = -1
NEVER = -inf


@dataclass(slots=True)
class Replica:
    """One remote replica in the eyes of the leader; only the leader's ``Partition`` changes it."""

    broker_id: int
    log_start_offset: int = UNKNOWN_OFFSET
    log_end_offset: int = UNKNOWN_OFFSET
    last_fetch_leader_log_end_offset: int = UNKNOWN_OFFSET
    last_fetch_time: float = NEVER
    last_caught_up_time: float = NEVER
    broker_epoch: int = UNKNOWN_BROKER_EPOCH
    """Of the process that fetched last; −1 until a fetch carried one. Tells the controller whom we admit (KIP-903)."""

    def update_fetch_state(
        self,
        *,
        fetch_offset: int,
        log_start_offset: int,
        leader_end_offset: int,
        now: float,
        broker_epoch: int,
    ) -> None:
        """Take in one valid fetch."""
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_time = max(self.last_caught_up_time, now)
        elif fetch_offset >= self.last_fetch_leader_log_end_offset:
            self.last_caught_up_time = max(self.last_caught_up_time, self.last_fetch_time)
        self.log_start_offset = log_start_offset
        self.log_end_offset = fetch_offset
        self.last_fetch_leader_log_end_offset = max(
            leader_end_offset, self.last_fetch_leader_log_end_offset
        )
        self.last_fetch_time = now
        if broker_epoch >= 0:
            self.broker_epoch = broker_epoch

    def reset(self, *, now: float, in_isr: bool) -> None:
        """Start a leader epoch. ISR members get the grace of being caught up now; the others must prove it.

        What was fetched in an earlier epoch may have been truncated since, so the high watermark waits for a fetch of
        every ISR member. (Kafka keeps it when the leader stays the same, and trusts that no other led in between.)
        """
        self.log_start_offset = UNKNOWN_OFFSET
        self.log_end_offset = UNKNOWN_OFFSET
        self.last_fetch_leader_log_end_offset = UNKNOWN_OFFSET
        self.last_fetch_time = NEVER
        self.last_caught_up_time = now if in_isr else NEVER
        self.broker_epoch = UNKNOWN_BROKER_EPOCH

    def is_caught_up(self, leader_end_offset: int, now: float, max_lag: float) -> bool:
        """True at the leader's end, or if it was there within ``max_lag`` seconds (KAFKA-7152: an idle one stays)."""
        return self.log_end_offset == leader_end_offset or now - self.last_caught_up_time <= max_lag
