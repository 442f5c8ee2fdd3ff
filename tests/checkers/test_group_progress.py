"""Progress of groups: what members have read below the offsets that they commit."""

from __future__ import annotations

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import client, history, poll
from nemesis.checkers.breaks.group_progress import read
from nemesis.checkers.breaks.groups import commit
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from tests.checkers.histories import only

NAME = "group-progress"


def judged(*events: Event | list[Event]) -> Result:
    return only(CHECKERS[NAME].check(), history(*events), NAME)


def start_of_log(time: int, start: int, *, member: str = "a") -> list[Event]:
    process = f"member-{member}.1"
    return [
        client(time, process, "invoke", "log-start", time),
        client(time + 1, process, "ok", "log-start", time, log_start_offset=start),
    ]


def test_what_was_read_may_be_committed() -> None:
    result = judged(read(0, 0, 5), commit(3, 1, 1, 5))
    assert (result.verdict, result.checked) == (Verdict.VALID, 1)


def test_what_nothing_has_read_is_unprocessed() -> None:
    (finding,) = judged(read(0, 0, 5), commit(3, 1, 1, 7)).findings
    assert finding.sentence == (
        "g committed offset 7 of t-0, of which it has read nothing from offset 5 on."
    )


def test_another_member_goes_on_where_the_first_one_was() -> None:
    second = [read(5, 5, 8, member="b"), commit(7, 1, 2, 8, member="b")]
    result = judged(read(0, 0, 5), commit(3, 1, 1, 5), *second)
    assert (result.verdict, result.checked) == (Verdict.VALID, 2)


def test_what_another_group_has_read_does_not_count() -> None:
    other = [_in_other_group(event) for event in commit(2, 1, 1, 5)]
    first_of_b = commit(3, 1, 1, 0, member="b")
    result = judged(read(0, 0, 5), other, first_of_b, commit(6, 1, 1, 5, member="b"))
    assert len(result.findings) == 1


def test_what_is_read_again_is_counted() -> None:
    again = read(5, 2, 8, member="b")
    result = judged(read(0, 0, 5), commit(3, 1, 1, 2), again, commit(7, 1, 2, 8, member="b"))
    assert result.verdict is Verdict.VALID
    assert result.numbers == {"offsets_read": 8.0, "offsets_read_again": 3.0}


def test_a_group_that_has_lost_its_offsets_reads_again() -> None:
    again = [read(5, 0, 3, member="b"), commit(7, 1, 2, 3, member="b")]
    assert judged(read(0, 0, 5), commit(3, 1, 1, 5), *again).findings == ()


def test_deleted_records_count_as_read() -> None:
    deleted = start_of_log(0, 6)
    result = judged(deleted, read(3, 6, 8), commit(5, 1, 1, 8))
    assert result.findings == ()
    assert result.numbers == {"offsets_read": 2.0, "offsets_read_again": 0.0}
    assert judged(start_of_log(0, 5), read(3, 6, 8), commit(5, 1, 1, 8)).findings


def test_offsets_that_compaction_has_removed_lie_within_an_answer() -> None:
    compacted = poll(0, 0, {0: 0, 7: 7}, process="member-a.1", last_offset=8)
    assert judged(compacted, commit(3, 1, 1, 9)).findings == ()


def test_a_poll_that_is_not_answered_has_read_nothing() -> None:
    lost = poll(0, 0, {}, process="member-a.1", last_offset=4)
    unanswered = [lost[0], client(1, "member-a.1", "info", "poll", 0, error="CLIENT_TIMED_OUT")]
    assert judged(unanswered, commit(3, 1, 1, 5)).findings


def test_a_commit_that_is_not_acknowledged_is_not_judged() -> None:
    for kind in ("info", "fail"):
        result = judged(commit(3, 1, 1, 5, kind=kind, error="REQUEST_TIMED_OUT"))
        assert (result.verdict, result.checked) == (Verdict.UNKNOWN, 0)


def test_partitions_and_topics_are_apart() -> None:
    events = [commit(3, 1, 1, 5, partition=1), commit(5, 1, 1, 5)]
    assert len(judged(read(0, 0, 5), *events).findings) == 1


def test_plain_consumers_do_not_count() -> None:
    plain = poll(0, 0, {n: n for n in range(5)}, process="consumer-0", last_offset=4)
    assert judged(plain, commit(3, 1, 1, 5)).findings


def test_a_poll_of_the_same_time_comes_before_the_commit() -> None:
    assert judged(read(0, 0, 5), commit(1, 1, 1, 5)).findings == ()


def _in_other_group(event: Event) -> Event:
    columns = {name: getattr(event, name) for name in event.__struct_fields__}
    return Event(**{**columns, "group": "other"})
