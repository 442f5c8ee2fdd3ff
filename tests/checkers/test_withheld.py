"""A broker that answers fetches below its high watermark with nothing: judged by what final readers were answered."""

from __future__ import annotations

import msgspec
import pytest

from nemesis.checkers.breaks.clients import answered, missed, returned_nothing
from nemesis.checkers.breaks.events import (
    become_leader,
    final,
    history,
    log_start,
    poll,
    send,
    znode,
)
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.log import ClientLog
from nemesis.history.events import Event
from tests.checkers.histories import judge as judge_all

Part = Event | list[Event]
SENT = send(1, 7, offset=0)
ASKED_TWICE = [*returned_nothing(3, mark=1), *returned_nothing(8, mark=1)]


def judge(*parts: Part, large: int = 10**9) -> Result:
    check = ClientLog()
    check.large = large  # type: ignore[misc]
    return judge_all(check, history(*parts))["withheld"]


@pytest.mark.parametrize("large", [0, 10**9])
def test_a_record_that_a_broker_did_not_hand_out(large: int) -> None:
    result = judge(SENT, ASKED_TWICE, missed(10), large=large)
    (finding,) = result.findings
    assert (result.verdict, result.checked, finding.key) == (Verdict.INVALID, 1, "t-0")
    assert finding.sentence == (
        "Broker 1 returned nothing of t-0 from offset 0 on, in 2 answers without an error within 5 ms, though value 7 "
        "is committed at offset 0: its high watermark was 1, and its log started at 0."
    )
    assert [event["time"] // 1_000_000 for event in finding.events] == [2, 4, 9, 10]


def test_the_first_record_that_is_missing_is_named() -> None:
    read = poll(3, 0, {0: 7}, process="final-0", mark=3, log_start_offset=0, last_offset=0)
    other_read = poll(1, 2, {2: 9})
    empty = [returned_nothing(time, position=1, mark=3) for time in (5, 7)]
    (finding,) = judge(SENT, other_read, read, *empty, missed(9, position=1)).findings
    assert "value 9 is committed at offset 2" in finding.sentence


LEADS = become_leader(0, 1, 2, 0)
TOO_LOW = [*returned_nothing(7, mark=0), *returned_nothing(9, mark=0)]


def test_a_high_watermark_that_the_leader_answered_before_counts() -> None:
    (finding,) = judge(LEADS, SENT, answered(5, 1), TOO_LOW, missed(11)).findings
    assert "its high watermark was 1," in finding.sentence
    assert [event.get("f") for event in finding.events] == [
        *("send", "latest-offset", "poll", "poll", None)
    ]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([SENT, returned_nothing(3, mark=1), missed(5)], id="asked-once"),
        pytest.param([SENT, TOO_LOW, missed(11)], id="below-the-high-watermark-nothing-is-missing"),
        pytest.param(
            [SENT, returned_nothing(3, mark=1), returned_nothing(5, mark=1, node=2), missed(7)],
            id="two-brokers",
        ),
        pytest.param([ASKED_TWICE, missed(10)], id="no-record-is-known"),
        pytest.param([send(1, 7, "info"), ASKED_TWICE, missed(10)], id="an-unknown-send"),
        pytest.param([send(1, 7, offset=0, acks=1), ASKED_TWICE, missed(10)], id="acks-1"),
        pytest.param([SENT, ASKED_TWICE, final(10, {0: 7})], id="it-is-returned-later"),
        pytest.param(
            [SENT, *(returned_nothing(time, mark=1, start=1) for time in (3, 5)), missed(7)],
            id="deleted-says-the-answer",
        ),
        pytest.param(
            [SENT, *(returned_nothing(t, mark=1, last_offset=0) for t in (3, 5)), missed(7)],
            id="a-batch-without-records",
        ),
        pytest.param(
            [SENT, *(poll(t, 0, {}, process="final-0", mark=1) for t in (3, 5)), missed(7)],
            id="an-older-format",
        ),
        pytest.param(
            [LEADS, SENT, answered(5, 1, node=2), TOO_LOW, missed(11)], id="another-brokers-end"
        ),
        pytest.param(
            [LEADS, SENT, answered(5, 1), become_leader(7, 1, 3, 0), TOO_LOW, missed(11)],
            id="a-new-leadership",
        ),
        pytest.param([SENT, answered(5, 1), TOO_LOW, missed(11)], id="no-traces"),
        pytest.param(
            [
                *(send(1, 7, offset=0, topic_id="old"), SENT),
                znode(
                    9, 1, "/brokers/topics/t", zk_op="delete", topic="t", topic_id="id", partition=0
                ),
                *(ASKED_TWICE, missed(10)),
            ],
            id="a-deleted-topic",
        ),
    ],
)
def test_a_correct_broker(parts: list[Part]) -> None:
    assert judge(*parts).findings == ()


def test_what_compaction_may_have_taken_need_not_be_returned() -> None:
    sends = [
        msgspec.structs.replace(event, key=3)
        for event in [*send(1, 7, offset=0), *send(3, 8, offset=1)]
    ]
    empty = [returned_nothing(time, mark=1) for time in (5, 7)]
    assert judge(sends, *empty, missed(9)).findings == ()
    both = [returned_nothing(time, mark=2) for time in (5, 7)]
    (finding,) = judge(sends, *both, missed(9)).findings
    assert "value 8 is committed at offset 1" in finding.sentence


def test_what_was_deleted_need_not_be_returned() -> None:
    started = log_start(2, 1, 1, 1)
    read = missed(10)
    read.log_start_offset = 1
    assert judge(LEADS, SENT, started, ASKED_TWICE, read).findings == ()


def test_no_final_read_proves_nothing() -> None:
    assert judge(SENT, poll(3, 0, {0: 7})).verdict is Verdict.UNKNOWN
    assert judge(SENT, final(3, {0: 7})).verdict is Verdict.VALID
