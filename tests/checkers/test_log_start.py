"""Where logs start: what may go, and what readers need not see."""

from __future__ import annotations

from typing import Any

from nemesis.checkers.breaks.events import TP, become_leader, broker, client, poll, send
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.log import ClientLog
from nemesis.checkers.replication.log_start import LogStartBounded
from nemesis.history.events import Event
from tests.checkers.histories import only


def raised(time: int, node: int, start: int, mark: int, **columns: Any) -> Event:
    said = {"log_start_offset": start, "high_watermark": mark, "reason": "segment-deletion"}
    return broker(time, node, "log-start-offset", **(TP | said | columns))


class TestLogStartBounded:
    def test_starts_that_grow_below_the_high_watermark(self) -> None:
        events = [raised(1, 1, 3, 5), raised(2, 1, 5, 5), raised(3, 2, 4, 4)]
        result = only(LogStartBounded(), events)
        assert (result.verdict, result.checked) == (Verdict.VALID, 3)

    def test_a_start_above_the_high_watermark(self) -> None:
        """KAFKA-5634."""
        (finding,) = only(LogStartBounded(), [raised(1, 1, 6, 5)]).findings
        assert finding.sentence == "Broker 1's log of t-0 starts at 6, above its high watermark 5."

    def test_a_start_that_falls_in_one_life(self) -> None:
        (finding,) = only(LogStartBounded(), [raised(1, 1, 4, 5), raised(2, 1, 3, 5)]).findings
        assert finding.sentence.endswith("starts at 3 again, after it had started at 4.")

    def test_a_start_that_falls_in_a_crash_or_when_the_log_is_emptied(self) -> None:
        cut = broker(2, 1, "truncate", **TP, log_start_offset=2, log_end_offset=2)
        events = [raised(1, 1, 4, 5), cut, raised(3, 1, 3, 5), raised(4, 1, 1, 5, incarnation=9)]
        assert only(LogStartBounded(), events).verdict is Verdict.VALID

    def test_records_that_nobody_had_asked_to_delete(self) -> None:
        asked = client(1, "admin-1", "invoke", f="delete-records", op=1, offset=3, **TP)
        by_client = {"reason": "client-record-deletion"}
        events = [asked, raised(2, 1, 3, 5, **by_client), raised(3, 1, 4, 5, **by_client)]
        (finding,) = only(LogStartBounded(), events).findings
        assert "below 4, which no client had asked" in finding.sentence

    def test_a_request_of_a_client_that_has_not_heard_of_a_deletion(self) -> None:
        """DeleteRecords names the topic: the request reaches the next topic of the name."""
        asked = client(1, "admin-1", "invoke", f="delete-records", op=1, offset=3, **TP)
        by_client = {"reason": "client-record-deletion", "topic_id": "later"}
        assert only(LogStartBounded(), [asked, raised(2, 1, 3, 5, **by_client)]).findings == ()


def told(time: int, process: str, offset: int) -> list[Event]:
    return [
        client(time, process, "invoke", f="log-start", op=time, **TP),
        client(time + 1, process, "ok", f="log-start", op=time, log_start_offset=offset, **TP),
    ]


class TestReaders:
    def sent(self) -> list[Event]:
        return [*send(1, 7, offset=0), *send(3, 8, offset=1), *send(5, 9, offset=2)]

    def final_from(self, start: int) -> list[Event]:
        return [
            *poll(20, start, {2: 9}, process="final-0"),
            Event(
                time=30,
                process="final-0",
                kind="final-read",
                offset=3,
                high_watermark=3,
                log_start_offset=start,
                **TP,
            ),
        ]

    def verdict(self, name: str, *events: Event) -> Verdict:
        return only(ClientLog(), list(events), name).verdict

    def test_what_lies_below_the_start_need_not_be_seen(self) -> None:
        lead = become_leader(7, 1, 0, 3)
        events = [*self.sent(), lead, raised(10, 1, 2, 3), *self.final_from(2)]
        assert self.verdict("unseen", *events) is Verdict.VALID
        assert self.verdict("lost-write", *events) is Verdict.VALID

    def test_a_start_that_no_broker_tells_of_excuses_nothing(self) -> None:
        lead = become_leader(7, 1, 0, 3)
        events = [*self.sent(), lead, raised(10, 1, 1, 3), *self.final_from(2)]
        assert self.verdict("unseen", *events) is Verdict.INVALID

    def test_who_was_told_of_the_start_may_go_on_there(self) -> None:
        polls = [*poll(10, 0, {0: 7}), *told(12, "consumer-0", 2), *poll(14, 2, {2: 9})]
        assert self.verdict("poll-skip", *self.sent(), *polls) is Verdict.VALID
        without = [*poll(10, 0, {0: 7}), *poll(14, 2, {2: 9}), *told(16, "consumer-0", 2)]
        assert self.verdict("poll-skip", *self.sent(), *without) is Verdict.INVALID
