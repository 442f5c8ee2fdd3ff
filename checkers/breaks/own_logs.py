"""The smallest histories that break the properties of a replica and its own log."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import TP, become_leader, broker, history, loaded, truncate

LEADER_KEEPS_LOG: Final = (
    history(become_leader(1, 1, 2, 5), truncate(2, 1, 3)),
    history(
        become_leader(1, 1, 2, 5),
        broker(2, 1, "log-dir-changed", log_dir="/b", log_end_offset=4, **TP),
    ),
)
HW_WITHIN_LOG: Final = (history(loaded(1, 1, 4, high_watermark=5)),)
PRODUCERS_WITHIN_LOG: Final = (
    history(truncate(1, 1, 3, producers_end=5)),
    history(loaded(1, 1, 4, producers_end=5)),
    history(become_leader(1, 1, 2, 4, producers_end=5)),
    history(broker(1, 1, "become-follower", leader=2, log_end_offset=4, producers_end=5, **TP)),
    history(broker(1, 1, "log-dir-changed", log_dir="/b", log_end_offset=4, producers_end=5, **TP)),
)
