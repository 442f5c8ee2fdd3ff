"""What clients see: the queue anomalies, each with its smallest history."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.breaks.events import (
    TP,
    become_leader,
    broker,
    client,
    final,
    high_watermark,
    loaded,
    poll,
    send,
    started,
    znode,
)
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.framework.property import property_names
from nemesis.checkers.log import ClientLog
from nemesis.checkers.log.partition_operations import Poll
from nemesis.checkers.log.send_anomalies import Coverage
from nemesis.history.events import Event
from tests.checkers.histories import finding, judge, only

Said = Event | list[Event]


def result(name: str, *events: Said) -> Result:
    flat = [event for item in events for event in (item if isinstance(item, list) else [item])]
    return only(ClientLog(), flat, name)


def sentences(name: str, *events: Said) -> list[str]:
    return [item.sentence for item in result(name, *events).findings]


def convergence(time: int, error: str) -> Event:
    return Event(
        time=time, process="harness", kind="convergence", seq=time, check="leaders", error=error
    )


ALL_IS_WELL = [
    *send(1, 7, offset=0),
    *poll(3, 0, {0: 7}),
    *send(5, 8, offset=1),
    *send(7, 9, "info", error="REQUEST_TIMED_OUT"),
    *send(9, 10, "fail", error="NOT_ENOUGH_REPLICAS"),
    *poll(11, 1, {1: 8, 2: 9}),
    *final(20, {0: 7, 1: 8, 2: 9}),
]


def test_a_history_in_which_all_is_well() -> None:
    results = judge(ClientLog(), ALL_IS_WELL)
    assert list(results) == list(property_names(ClientLog))
    assert {name: result.verdict for name, result in results.items()} == dict.fromkeys(
        property_names(ClientLog), Verdict.VALID
    )
    assert results["unseen"].checked == 2
    assert results["lost-write"].checked == 3
    assert results["poll-skip"].checked == 3


class TestLostWrite:
    def test_an_acknowledged_value_that_final_reads_went_past(self) -> None:
        lost, kept = send(1, 7, offset=0), send(3, 8, offset=1)
        reads = final(20, {1: 8})
        assert result("lost-write", lost, kept, reads).findings == (
            finding(
                "lost-write",
                "t-0",
                "Value 7, committed at offset 0 of t-0, was gone when final-0 read past that offset.",
                lost[1],
                reads[1],
            ),
        )

    def test_a_value_that_was_read_and_then_vanished(self) -> None:
        events = [send(1, 7, "info"), poll(3, 0, {0: 7}), final(20, {0: 5, 1: 6})]
        assert sentences("lost-write", *events) == [
            "Value 7, committed at offset 0 of t-0, was gone when final-0 read past that offset."
        ]

    def test_without_final_reads_any_read_tells(self) -> None:
        events = [send(1, 7, offset=0), send(3, 8, offset=1), poll(5, 0, {1: 8})]
        assert len(sentences("lost-write", *events)) == 1

    def test_reads_that_did_not_come_so_far_tell_nothing(self) -> None:
        events = [send(1, 7, offset=0), send(3, 8, offset=5), poll(5, 0, {0: 7})]
        assert result("lost-write", *events).verdict == Verdict.VALID

    def test_unknown_sends_and_acks_1_promise_nothing(self) -> None:
        events = [send(1, 7, "info", offset=0), send(3, 8, acks=1, offset=1)]
        assert result("lost-write", *events, final(20, {0: 5, 1: 6})).verdict == Verdict.VALID

    def test_losses_that_acks_permits_are_counted(self) -> None:
        sends: list[Said] = [
            send(1, 7, acks=1, offset=0),
            send(3, 8, acks=1, offset=1),
            send(5, 9, acks=0, offset=-1),
            send(7, 6, "info", acks=1),
            send(9, 5, offset=1),
        ]
        judged = result("unseen", *sends, final(20, {0: 7, 1: 5}))
        assert (judged.verdict, judged.finding_count) == (Verdict.VALID, 0)
        assert judged.numbers == {"acks_0_or_1_sends": 3, "acks_0_or_1_lost": 2}

    def test_final_reads_that_decide_nothing_count_no_loss(self) -> None:
        reads = final(20, {0: 5}, mark=9)
        judged = result("unseen", send(1, 7, acks=1, offset=1), send(3, 5, offset=0), reads)
        assert judged.numbers == {"acks_0_or_1_sends": 1, "acks_0_or_1_lost": 0}

    def test_what_retention_may_have_removed_is_not_counted_as_lost(self) -> None:
        below, unknown = send(1, 7, acks=1, offset=0), send(3, 8, acks=0, offset=-1)
        reads = final(20, {1: 5})
        reads[-1].log_start_offset = 1
        judged = result("unseen", below, unknown, send(5, 5, offset=1), reads)
        assert judged.numbers == {"acks_0_or_1_sends": 2, "acks_0_or_1_lost": 0}

    def test_an_unclean_election_allows_it(self) -> None:
        unclean = broker(2, 9, "leader-elected", leader=2, leader_epoch=1, strategy="unclean", **TP)
        events: list[Said] = [send(3, 7, offset=0), unclean, final(20, {0: 5})]
        judged = result("lost-write", *events)
        assert (judged.verdict, judged.finding_count) == (Verdict.VALID, 1)
        allowed = result("lost-write", started(1, 1, unclean=True), *events)
        assert allowed.verdict == Verdict.VALID
        for name in ("lost-write", "unseen"):
            forbidden = result(name, started(1, 1, unclean=False), *events)
            assert (forbidden.verdict, forbidden.finding_count) == (Verdict.INVALID, 1)


class TestUnseen:
    def test_an_acknowledged_tail_that_is_gone(self) -> None:
        lost, reads = send(1, 7, offset=0), final(20, {})
        assert result("unseen", lost, reads).findings == (
            finding(
                "unseen",
                "t-0",
                "Value 7, acknowledged at offset 0 of t-0, was not returned by the final reads.",
                lost[1],
                reads[2],
            ),
        )

    def test_a_final_read_that_did_not_reach_the_end_is_unknown(self) -> None:
        judged = result("unseen", send(1, 7, offset=3), final(20, {0: 5}, mark=4))
        assert judged.verdict == Verdict.UNKNOWN
        assert judged.findings[0].sentence == (
            "1 acknowledged value of t-0 was not read. It is not decided whether it is lost: the final read stopped at "
            "offset 1, perhaps before the end."
        )

    def test_no_final_read_is_unknown(self) -> None:
        assert result("unseen", send(1, 7, offset=0)).verdict == Verdict.UNKNOWN

    def test_a_hole_is_certain_even_if_the_end_was_not_reached(self) -> None:
        events = [send(1, 7, offset=0), send(3, 8, offset=1), final(20, {1: 8}, mark=9)]
        assert result("unseen", *events).verdict == Verdict.INVALID

    def test_a_new_leader_whose_high_watermark_lags_proves_nothing(self) -> None:
        # Its log holds offset 0 already, but it may not serve it before its followers confirm.
        events: list[Said] = [
            send(1, 7, offset=0),
            become_leader(10, 2, 1, 1),
            final(20, {}, node=2),
        ]
        assert result("unseen", *events).verdict == Verdict.UNKNOWN
        caught_up: list[Said] = [
            send(1, 7, offset=0),
            become_leader(10, 2, 1, 0),
            final(20, {}, node=2),
        ]
        assert result("unseen", *caught_up).verdict == Verdict.INVALID

    def test_a_deposed_leader_that_answers_the_final_read_proves_nothing(self) -> None:
        events: list[Said] = [
            become_leader(1, 1, 0, 0),
            become_leader(2, 2, 1, 0),
            send(3, 7, offset=0),
        ]
        assert result("unseen", *events, final(20, {}, node=1)).verdict == Verdict.UNKNOWN
        assert result("unseen", *events, final(20, {}, node=2)).verdict == Verdict.INVALID

    def test_a_cluster_that_did_not_converge_proves_nothing_about_the_tail(self) -> None:
        events = [send(1, 7, offset=0), final(20, {})]
        assert result("unseen", *events, convergence(30, "no leader")).verdict == Verdict.UNKNOWN
        assert result("unseen", *events, convergence(30, "NONE")).verdict == Verdict.INVALID


class TestFinalReadsWithoutTraces:
    """The high watermark at rest shows whether the final read had reached the end."""

    def at_rest(self, node: int, mark: int) -> Event:
        return Event(
            time=50,
            process="harness",
            kind="replica-offsets",
            node=node,
            leader=1,
            high_watermark=mark,
            error="NONE",
            **TP,
        )

    def test_a_leader_that_lagged_proves_nothing(self) -> None:
        events = [send(1, 7, offset=0), final(20, {})]
        assert result("unseen", *events, self.at_rest(1, 1)).verdict == Verdict.UNKNOWN
        assert result("unseen", *events, self.at_rest(1, 0)).verdict == Verdict.INVALID
        assert result("unseen", *events, self.at_rest(2, 1)).verdict == Verdict.INVALID

    def test_what_was_read_may_be_there(self) -> None:
        events = [poll(1, 0, {0: 7}), final(9, {})]
        name = "stale-read-above-hw"
        assert result(name, *events).verdict == Verdict.INVALID
        assert result(name, *events, self.at_rest(1, 1)).verdict == Verdict.VALID


class TestReadsAboveTheHighWatermarkOfTheAnswer:
    def test_only_brokers_that_trace_answer_for_it(self) -> None:
        read, traced = poll(3, 0, {0: 7, 1: 8}, mark=1), high_watermark(1, 1, 0, 2, [1])
        assert result("stale-read-above-hw", read).verdict == Verdict.VALID
        assert sentences("stale-read-above-hw", traced, read) == [
            "consumer-0 was given offset 1 of t-0 in an answer that states high watermark 1."
        ]

    def test_a_leader_that_has_traced_nothing_does_not_silence_the_others(self) -> None:
        follows = broker(1, 2, "become-follower", leader=1, leader_epoch=0, **TP)
        read = poll(3, 0, {0: 7, 1: 8}, mark=1)
        assert result("stale-read-above-hw", follows, read).verdict == Verdict.INVALID


class TestReadsAboveEveryHighWatermark:
    """Whatever the answer says of itself: a follower answers, too."""

    def test_of_a_record_that_no_leader_had_declared_committed(self) -> None:
        mark = high_watermark(1, 1, 0, 1, [1, 2])
        read = poll(2, 0, {0: 7, 1: 8}, node=2)
        too_late = high_watermark(4, 1, 0, 2, [1, 2])
        assert result("stale-read-above-hw", mark, read, too_late).findings == (
            finding(
                "stale-read-above-hw",
                "t-0",
                "consumer-0 was given offset 1 of t-0 when no leader had raised its high watermark above 1.",
                mark,
                read[1],
            ),
        )

    def test_the_highest_counts_whoever_stated_it(self) -> None:
        marks = [high_watermark(1, 1, 0, 2, [1]), become_leader(2, 2, 1, 5, high_watermark=0)]
        read = poll(3, 0, {0: 7, 1: 8}, node=2)
        assert result("stale-read-above-hw", *marks, read).verdict == Verdict.VALID

    def test_a_log_may_be_older_than_the_history(self) -> None:
        opened = loaded(1, 1, 5, high_watermark=2)
        read = poll(2, 0, {0: 7, 1: 8}, node=1)
        assert result("stale-read-above-hw", opened, read).verdict == Verdict.VALID

    def test_nothing_is_known_when_a_leader_has_left_no_trace(self) -> None:
        follows = broker(1, 2, "become-follower", leader=1, leader_epoch=0, **TP)
        opened = loaded(0, 2, 0, high_watermark=0)
        read = poll(2, 0, {0: 7}, node=2)
        assert result("stale-read-above-hw", opened, follows, read).verdict == Verdict.VALID
        traced = loaded(0, 1, 0, high_watermark=0)
        judged = result("stale-read-above-hw", opened, traced, follows, read)
        assert judged.verdict == Verdict.INVALID


class TestOtherAnomalies:
    def test_duplicate_is_reported_and_allowed(self) -> None:
        sent, read = send(1, 7, offset=0), poll(3, 1, {1: 7})
        judged = result("duplicate", sent, read)
        assert judged.verdict == Verdict.VALID
        assert judged.findings == (
            finding(
                "duplicate",
                "t-0",
                "Value 7 stands at offset 0 and at offset 1 of t-0.",
                sent[1],
                read[1],
                verdict=Verdict.VALID,
            ),
        )

    def test_duplicate_of_an_idempotent_producer_is_invalid(self) -> None:
        sent, read = send(1, 7, offset=0, delivery="idempotent"), poll(3, 1, {1: 7})
        judged = result("duplicate", sent, read)
        assert judged.verdict == Verdict.INVALID
        assert [finding.verdict for finding in judged.findings] == [Verdict.INVALID]
        other = send(2, 8, offset=2, delivery="idempotent")
        assert result("duplicate", other, send(1, 7, offset=0), read).verdict == Verdict.VALID

    def test_inconsistent_offset(self) -> None:
        sent, read = send(1, 7, offset=0), poll(3, 0, {0: 8})
        assert result("inconsistent-offset", sent, read).findings == (
            finding(
                "inconsistent-offset",
                "t-0",
                "Offset 0 of t-0 held value 7 and value 8.",
                sent[1],
                read[1],
            ),
        )

    def test_an_offset_acknowledged_with_acks_1_may_be_given_again(self) -> None:
        events = [send(1, 7, acks=1, offset=0), poll(3, 0, {0: 8})]
        assert result("inconsistent-offset", *events).verdict == Verdict.VALID

    def test_dirty_read(self) -> None:
        sent, read = send(1, 7, "fail", error="NOT_ENOUGH_REPLICAS"), poll(3, 0, {0: 7})
        assert result("dirty-read", sent, read).findings == (
            finding(
                "dirty-read",
                "t-0",
                "Value 7 was read from t-0 though its send had certainly failed.",
                sent[1],
                read[1],
            ),
        )

    def test_an_unknown_send_may_be_read(self) -> None:
        assert result("dirty-read", send(1, 7, "info"), poll(3, 0, {0: 7})).verdict == "valid"
        unfinished = client(1, "producer-0", "invoke", "send", 1, value=7, acks=-1)
        assert result("dirty-read", unfinished, poll(3, 0, {0: 7})).verdict == Verdict.VALID

    def test_poll_skip_within_a_poll(self) -> None:
        read = poll(3, 0, {0: 7, 2: 8})
        assert result("poll-skip", read).findings == (
            finding(
                "poll-skip",
                "t-0",
                "A poll of t-0 by consumer-0 from 0 skipped offset 1: it returned offset 2.",
                read[1],
            ),
        )

    def test_poll_skip_between_polls(self) -> None:
        first, two = poll(3, 0, {0: 7}), poll(5, 2, {2: 8})
        assert result("poll-skip", first, two).findings == (
            finding(
                "poll-skip",
                "t-0",
                "consumer-0 polled t-0 from 2 though its last poll there had ended at 1.",
                first[1],
                two[1],
            ),
        )

    def test_polls_without_an_answer_move_nothing(self) -> None:
        failed = [
            client(3, "consumer-0", "invoke", "poll", 3, offset=0),
            client(4, "consumer-0", "info", "poll", 3, offset=0, error="CLIENT_TIMED_OUT"),
        ]
        events = [failed, poll(5, 0, {}), poll(7, 0, {0: 7}), poll(9, 0, {0: 7}, process="other")]
        assert result("poll-skip", *events).verdict == Verdict.VALID
        assert result("nonmonotonic-poll", *events).verdict == Verdict.VALID

    def test_nonmonotonic_poll_within_a_poll(self) -> None:
        read = poll(3, 1, {0: 7, 1: 8})
        assert result("nonmonotonic-poll", read).findings == (
            finding(
                "nonmonotonic-poll",
                "t-0",
                "A poll of t-0 by consumer-0 from 1 went backwards: it returned offset 0.",
                read[1],
            ),
        )

    def test_nonmonotonic_poll_between_polls(self) -> None:
        events = [poll(3, 0, {0: 7, 1: 8}), poll(5, 1, {1: 8})]
        assert sentences("nonmonotonic-poll", *events) == [
            "consumer-0 polled t-0 from 1 though its last poll there had ended at 2."
        ]

    def test_nonmonotonic_send(self) -> None:
        first, two = send(1, 7, offset=5), send(3, 8, offset=4)
        assert result("nonmonotonic-send", first, two).findings == (
            finding(
                "nonmonotonic-send",
                "t-0",
                "producer-0 sent value 8 to t-0 after 7 had been acknowledged at offset 5, and it was acknowledged at "
                "offset 4.",
                first[1],
                two[1],
            ),
        )

    def test_sends_of_others_may_overtake(self) -> None:
        events = [send(1, 7, offset=5), send(3, 8, offset=4, process="producer-1")]
        assert result("nonmonotonic-send", *events).verdict == Verdict.VALID


def test_incarnations_of_a_topic_are_apart() -> None:
    events = [*send(1, 7, offset=0), *send(3, 8, offset=0, topic_id="later")]
    assert result("inconsistent-offset", events).verdict == Verdict.VALID


def deleted(topic_id: str) -> Event:
    """ZooKeeper deletes the partition's state, after its replicas have been deleted."""
    path = "/brokers/topics/t/partitions/0/state"
    return znode(9, 1, path, zk_op="delete", **TP | {"topic_id": topic_id})


def test_what_a_deleted_topic_held_need_not_be_seen_again() -> None:
    history = [*send(1, 7, offset=0), *final(20, {0: 8}, topic_id="later")]
    assert result("unseen", *history).verdict == Verdict.UNKNOWN
    gone = [*history, deleted(TP["topic_id"]), *send(3, 8, offset=0, topic_id="later")]
    assert result("unseen", *gone).verdict == Verdict.VALID
    assert result("unseen", *gone).checked == 1
    # The topic that is there now was not deleted.
    kept = [*gone, *send(5, 9, offset=1, topic_id="later")]
    assert result("unseen", *kept).verdict == Verdict.INVALID


def test_a_topic_that_only_ever_had_one_life_may_be_deleted() -> None:
    history = send(1, 7, offset=0)
    assert result("unseen", history).verdict == Verdict.UNKNOWN
    assert result("unseen", history, deleted(TP["topic_id"])).findings == ()


def test_a_send_belongs_to_the_life_in_which_it_was_read() -> None:
    """Its client had not heard that the topic was deleted and created again."""
    late = send(5, 8, offset=0)
    first = [*send(1, 7, offset=0), *poll(3, 0, {0: 7}), deleted(TP["topic_id"])]
    second = final(20, {0: 8}, topic_id="later")
    for name in ("inconsistent-offset", "unseen", "lost-write"):
        assert result(name, *first, late, second).findings == ()
    assert result("unseen", *first, late, second).checked == 1
    torn = final(20, {0: 9}, topic_id="later")
    reread = poll(7, 0, {0: 8}, topic_id="later")
    assert sentences("lost-write", *first, late, reread, torn) == [
        "Value 8, committed at offset 0 of t-0, was gone when final-0 read past that offset."
    ]


def test_a_send_that_nobody_read_and_that_may_be_of_a_later_life_is_left_out() -> None:
    """Its client meant a topic that was deleted; the next one of that name, at whose start it is, nobody has read."""
    first = [*send(1, 7, offset=0), *poll(3, 0, {0: 7}), deleted(TP["topic_id"])]
    for name in ("inconsistent-offset", "nonmonotonic-send"):
        assert result(name, *first, *send(9, 8, offset=0)).findings == ()
    numbers = result("unseen", *first, *send(9, 8, offset=0), *send(11, 9, offset=0)).numbers
    assert numbers == {"sends_of_unknown_topic_incarnation": 2}


def test_what_was_acknowledged_before_the_deletion_is_of_the_life_that_was_meant() -> None:
    first = [*send(1, 7, offset=0), *send(3, 8, offset=0), *poll(5, 0, {0: 7})]
    stopped = broker(20, 2, "replica-stopped", step="delete", **TP)
    earlier = broker(2, 2, "replica-stopped", step="delete", **TP)
    history = [*first, deleted(TP["topic_id"])]
    assert result("inconsistent-offset", *history, stopped).verdict == Verdict.INVALID
    # One that was taken away from a broker before, by a reassignment, is no deletion: it only makes us careful.
    assert result("inconsistent-offset", *history, stopped, earlier).findings == ()


def test_what_was_read_of_an_earlier_life_comes_back() -> None:
    earlier, later = poll(3, 0, {0: 7}), poll(9, 0, {0: 7, 1: 8}, topic_id="later")
    assert result("earlier-life-read", send(1, 7, offset=0), earlier, later).findings == (
        finding(
            "earlier-life-read",
            "t-0",
            f"Value 7 of t-0 was read of the topic with id {TP['topic_id']} and of the one with id later.",
            earlier[1],
            later[1],
        ),
    )


def test_rows_without_a_topic_id_belong_to_the_only_incarnation() -> None:
    assert (
        result(
            "inconsistent-offset", send(1, 7, offset=0, topic_id=None), poll(3, 0, {0: 8})
        ).verdict
        == "invalid"
    )


def test_nothing_seen_is_unknown() -> None:
    results = judge(
        ClientLog(), [client(1, "admin-0", "invoke", "create-topic", 1, partition=None)]
    )
    assert {result.verdict for result in results.values()} == {Verdict.UNKNOWN}


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), max_size=6), st.integers(0, 20))
def test_coverage_agrees_with_a_set(ranges: list[tuple[int, int]], offset: int) -> None:
    polls = [
        Poll("p", 0, 0, start, list(range(start, start + length)), [], None)
        for start, length in ranges
    ]
    assert (offset in Coverage(polls)) == any(offset in poll.offsets for poll in polls)
