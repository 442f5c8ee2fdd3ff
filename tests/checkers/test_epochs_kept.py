"""When a producer may be fenced; the smallest breaks are in ``test_properties``."""

from __future__ import annotations

import pytest

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.epochs_kept import (
    PRODUCER_EPOCH_KEPT,
    asked,
    begun,
    given,
    raised,
)
from nemesis.checkers.breaks.events import client, history, started
from nemesis.checkers.framework.engine import run_checks
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event, Kind
from nemesis.history.memory import history_of

V, U, I = Verdict.VALID, Verdict.UNKNOWN, Verdict.INVALID  # noqa: E741
ADD, COMMIT = "add-partitions", "commit-transaction"


def result(*parts: Event | list[Event]) -> Result:
    check = CHECKERS["producer-epoch-kept"].check()
    return run_checks(history_of(history(*parts)).row_groups, [check])[0]


def refused(at_ms: int = 10, *, node: int = 1) -> list[Event]:
    return asked(at_ms, ADD, "PRODUCER_FENCED", node=node)


def in_doubt(at_ms: int) -> Event:
    """An InitProducerId of another process that is never answered."""
    about = {"topic": None, "topic_id": None, "partition": None, "transactional_id": "writes-0"}
    return client(at_ms, "transactor-9", "invoke", "init-producer-id", 99, **about)


def test_nothing_is_decided_without_answers() -> None:
    assert result(given(0, 0)).verdict is U


def test_refusals_that_are_not_judged_are_not_counted() -> None:
    assert result(given(0, 0, unanswered=1), begun(2), asked(3, ADD)).checked == 0


def test_accepted_requests_are_counted() -> None:
    judged = result(given(0, 0), begun(2), asked(3, ADD), asked(5, COMMIT))
    assert (judged.verdict, judged.checked) == (V, 2)


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(
            [given(0, 0), begun(2), in_doubt(5), refused()],
            id="another producer asks, and is not answered",
        ),
        pytest.param(
            [in_doubt(0), given(5, 0), begun(7), refused()],
            id="a request of another producer may arrive late",
        ),
        pytest.param(
            [given(0, 0), begun(2), given(5, 1, process="transactor-9"), refused()],
            id="another producer has the next epoch",
        ),
        pytest.param(
            [given(0, 0, unanswered=1), begun(2), refused()],
            id="its own request may have arrived twice",
        ),
        pytest.param([given(0, 0), begun(2), refused(5_002)], id="its transaction timed out"),
        pytest.param(
            [given(0, 0), begun(2), refused(node=2)], id="a broker that may be a former coordinator"
        ),
        pytest.param(
            [
                given(0, 0),
                begun(2),
                Event(
                    time=3,
                    process="nemesis",
                    kind=Kind.FAULT_INVOKE,
                    seq=3,
                    fault="clock-skew",
                    node=1,
                ),
                refused(),
            ],
            id="a wall clock was moved",
        ),
    ],
)
def test_a_fenced_producer_is_no_finding_if_there_may_be_a_cause(
    parts: list[Event | list[Event]],
) -> None:
    judged = result(*parts)
    assert (judged.verdict, judged.findings) == (U, ())


def test_a_producer_that_goes_on_keeps_its_epoch_until_then() -> None:
    judged = result(given(0, 0), raised(3, None), begun(5), *_epoch_1(None))
    assert (judged.verdict, judged.checked) == (V, 1)
    assert result(given(0, 0), raised(3, None), raised(5, "PRODUCER_FENCED", epoch=1)).verdict is I


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([begun(2), raised(5, "PRODUCER_FENCED")], id="its transaction is open"),
        pytest.param([in_doubt(2), raised(5, "PRODUCER_FENCED")], id="another producer asks"),
        pytest.param([raised(5, "PRODUCER_FENCED", node=2)], id="a broker that may be another one"),
        pytest.param([raised(5, "CONCURRENT_TRANSACTIONS")], id="it is not refused for good"),
    ],
)
def test_a_producer_that_goes_on_may_be_fenced(parts: list[Event | list[Event]]) -> None:
    judged = result(given(0, 0), *parts)
    assert (judged.verdict, judged.findings) == (U, ())


def test_a_producer_that_was_answered_before_is_no_cause() -> None:
    assert result(given(0, 0), given(3, 1), *_epoch_1("PRODUCER_FENCED")).verdict is I


def _epoch_1(error: str | None) -> list[list[Event]]:
    return [asked(10, ADD, error, epoch=1)]


def test_a_transaction_that_ended_does_not_time_out() -> None:
    judged = result(given(0, 0), begun(2), asked(3, ADD), asked(5, COMMIT), refused(6_000))
    assert judged.verdict is I


def test_a_former_coordinator_may_time_out_a_transaction_that_its_successor_has_ended() -> None:
    """It has the epoch of its fence in memory, even when the abort cannot be written."""
    ended: list[Event] = [*given(0, 0), begun(2), *asked(3, ADD), *asked(5, COMMIT, node=2)]
    assert result(ended, refused(6_000)).findings == ()
    assert result(ended, refused(4_000)).verdict is I
    assert result(ended, asked(7, ADD), refused(6_000)).verdict is I


def test_a_loss_that_is_permitted_is_reported_and_allowed() -> None:
    check = CHECKERS["producer-epoch-kept"].check()
    events = (*history(started(0, 1, unclean=True)), *PRODUCER_EPOCH_KEPT[0])
    [judged] = run_checks(history_of(events).row_groups, [check])
    assert judged.verdict is V
    assert judged.findings
