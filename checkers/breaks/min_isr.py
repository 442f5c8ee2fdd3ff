"""The smallest history that breaks how many in-sync replicas an acknowledgement needs."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import acknowledged, broker, history

_TWO: Final = {"min_insync_replicas": 2, "unclean_leader_election_enable": False}

MIN_ISR_BEHIND_ACK: Final = (
    history(broker(0, 1, "broker-started", **_TWO), acknowledged(2, 1, 0, 7, isr=[1])),
)
