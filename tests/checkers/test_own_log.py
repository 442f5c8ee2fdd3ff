"""A leader and its own log; a replica and its own high watermark."""

from __future__ import annotations

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import TP, become_leader, broker, history, loaded, truncate
from nemesis.checkers.framework.model import Verdict
from nemesis.history.events import Event
from tests.checkers.histories import only

CHECK = CHECKERS["leader-keeps-log"].check


def findings(name: str, *events: Event) -> int:
    return len(only(CHECK(), history(*events), name).findings)


def test_a_deposed_leader_cuts_its_log() -> None:
    follows = broker(2, 1, "become-follower", leader=2, leader_epoch=3, log_end_offset=5, **TP)
    assert findings("leader-keeps-log", become_leader(1, 1, 2, 5), follows, truncate(3, 1, 3)) == 0


def test_another_broker_or_life_cuts_its_own_log() -> None:
    led = become_leader(1, 1, 2, 5)
    assert findings("leader-keeps-log", led, truncate(2, 2, 3)) == 0
    assert findings("leader-keeps-log", led, truncate(2, 1, 3, incarnation=2)) == 0


def test_a_replica_that_was_stopped_has_no_role() -> None:
    stopped = broker(2, 1, "replica-stopped", step="delete", **TP)
    assert findings("leader-keeps-log", become_leader(1, 1, 2, 5), stopped, truncate(3, 1, 0)) == 0


def test_a_leader_moves_its_whole_log() -> None:
    moved = broker(2, 1, "log-dir-changed", log_dir="/b", log_end_offset=7, **TP)
    assert findings("leader-keeps-log", become_leader(1, 1, 2, 5), moved) == 0


def test_a_high_watermark_may_be_the_end_of_the_log() -> None:
    assert findings("hw-within-log", loaded(1, 1, 5, high_watermark=5)) == 0
    assert findings("hw-within-log", truncate(1, 1, 4, high_watermark=5)) == 1


def test_producers_are_remembered_up_to_the_end_of_the_log() -> None:
    kept = truncate(2, 1, 3, producers_end=3)
    none = loaded(1, 1, 0, producers_end=0)
    longer = broker(3, 1, "log-start-offset", log_start_offset=3, log_end_offset=3, **TP)
    assert findings("producers-within-log", none, kept, longer) == 0
    assert findings("producers-within-log", none, truncate(2, 1, 3, producers_end=4)) == 1


def test_a_log_that_does_not_report_its_producers_is_not_judged() -> None:
    result = only(CHECK(), history(truncate(1, 1, 3)), "producers-within-log")
    assert (result.verdict, result.checked) == (Verdict.UNKNOWN, 0)
