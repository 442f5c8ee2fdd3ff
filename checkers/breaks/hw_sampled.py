"""The smallest histories in which samples of replicas contradict a high watermark."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import TP, harness, history
from nemesis.history.events import Event


def sample(time: int, node: int, **columns: Any) -> Event:
    """Return what a replica of t-0 answered; broker 1 leads in epoch 1, broker 2 follows."""
    term = {"leader": 1, "leader_epoch": 1, "broker_epoch": 7, "isr": [1, 2]}
    return harness(time, "replica-sample", **{**TP, "node": node, **term, **columns})


HW_SAMPLED: Final = (
    history(sample(1, 1, high_watermark=5), sample(2, 2, log_end_offset=4)),
    history(sample(1, 1, high_watermark=5), sample(2, 1, high_watermark=4)),
)
