"""Queues with dequeues in doubt and repeated values: compared with every order of random histories."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nemesis.checkers.breaks.operations import Call, events
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.linearizable.queues import FifoQueue
from tests.checkers.histories import judge
from tests.checkers.linearizable.objects import broken
from tests.checkers.linearizable.queue_model import MODEL
from tests.checkers.linearizable.random_objects import disagreements


def test_random_histories_are_judged_as_by_trying_out_every_order() -> None:
    assert list(disagreements(MODEL, range(400))) == []


@pytest.mark.nightly
def test_ten_thousand_random_histories() -> None:
    assert list(disagreements(MODEL, range(10_000))) == []


ENQUEUES = [Call("enqueue", 2 * value, 2 * value + 1, value=value) for value in (1, 2, 3)]


def test_a_dequeue_in_doubt_takes_one_value_at_most() -> None:
    doubtful = Call("dequeue", 10, 11, "info")
    assert broken(FifoQueue(), *ENQUEUES, doubtful, Call("dequeue", 20, 21, value=2)) == {}
    late = Call("dequeue", 20, 21, value=3)
    assert broken(FifoQueue(), *ENQUEUES, doubtful, late) == {"queue-order": 1}
    result = judge(FifoQueue(), events(*ENQUEUES, doubtful, late))["queue-order"]
    assert result.findings[0].sentence.startswith("dequeue 3 of the object fits into no order")


def test_a_value_that_is_enqueued_twice() -> None:
    again = Call("enqueue", 8, 9, value=1)
    taken = [Call("dequeue", 20 + 2 * i, 21 + 2 * i, value=v) for i, v in enumerate((1, 2, 3, 1))]
    assert broken(FifoQueue(), *ENQUEUES, again, *taken) == {}
    swapped = [replace(taken[1], value=3), replace(taken[2], value=2)]
    assert "queue-order" in broken(FifoQueue(), *ENQUEUES, again, taken[0], *swapped)


class BoundedQueue(FifoQueue):
    max_values = 30 * 31


def test_a_queue_with_too_many_values_is_unknown() -> None:
    calls = [Call("enqueue", 2 * n, 2 * n + 1, value=n) for n in range(30)]
    calls.append(Call("dequeue", 100, 101, "info"))
    assert judge(BoundedQueue(), events(*calls))["queue-order"].findings == ()
    calls.append(Call("dequeue", 100, 101, "info"))
    (undecided,) = judge(BoundedQueue(), events(*calls))["queue-order"].findings
    assert undecided.verdict is Verdict.UNKNOWN
    assert "32 operations on 30 values are too many" in undecided.sentence


def test_repeated_values_that_have_an_order_are_counted() -> None:
    calls = [Call("enqueue", 1, 2, value=1), Call("enqueue", 3, 4, value=1)]
    results = judge(FifoQueue(), events(*calls, Call("drain", 5, 6, values=(1, 1))))
    assert [result.verdict for result in results.values()] == [Verdict.VALID] * len(results)


DRAINED = Call("drain", 30, 40, values=(3,))


def test_a_drain_takes_what_it_returned_and_leaves_nothing() -> None:
    doubtful = Call("dequeue", 10, 11, "info")
    assert broken(FifoQueue(), *ENQUEUES, doubtful, Call("dequeue", 20, 21, value=2), DRAINED) == {}
    assert broken(FifoQueue(), *ENQUEUES, Call("dequeue", 20, 21, value=1), doubtful, DRAINED) == {}
    first = Call("dequeue", 50, 51, value=1)
    late = [*ENQUEUES, Call("enqueue", 50, 51, value=3), doubtful, Call("dequeue", 20, 21, value=2)]
    assert "queue-order" in broken(FifoQueue(), *late, DRAINED, first)


def test_a_drain_in_doubt_takes_any_number_of_values_from_its_beginning_on() -> None:
    in_doubt = Call("drain", 12, 13, "info")
    third = Call("dequeue", 20, 21, value=3)
    assert broken(FifoQueue(), *ENQUEUES, in_doubt, third) == {}
    before = replace(third, start=8, finish=9)
    assert broken(FifoQueue(), *ENQUEUES, in_doubt, before) == {"queue-order": 1}
    first = Call("dequeue", 22, 23, value=1)
    assert "queue-order" in broken(FifoQueue(), *ENQUEUES, in_doubt, third, first)


def test_a_drain_in_doubt_and_a_value_that_is_enqueued_twice() -> None:
    """Nothing is missing, but the queue began with 1."""
    again = Call("enqueue", 6, 7, value=1)
    taken = [Call("dequeue", 8, 9, value=2), Call("dequeue", 10, 11, value=1)]
    calls = [*ENQUEUES[:2], again, *taken, Call("drain", 12, 13, "info")]
    assert broken(FifoQueue(), *calls) == {"queue-order": 1}
