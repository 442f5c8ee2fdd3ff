"""Laws of a transactional id: its log gives its state again after any steps, and its epoch never falls."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.coordinator.transaction.transaction_loading import LoadedTransactions
from nemesis.reference.coordinator.transaction.transaction_metadata import (
    IllegalTransitionError,
    TransactionMetadata,
    Transition,
)
from nemesis.reference.coordinator.transaction.transaction_records import (
    transaction_key,
    transaction_value,
)
from nemesis.reference.coordinator.transaction.transaction_states import (
    IDLE,
    PREPARED,
    PREVIOUS,
    TransactionState,
)
from nemesis.reference.model import TopicPartition
from nemesis.reference.protocol.records import new_batch
from tests.reference.coordinator.transaction_fields import fields

KEYS = st.frozensets(st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 2)))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("init", "again", "rotate", "add", "commit", "abort", "fence", "complete")),
        KEYS,
        st.booleans(),
    ),
    max_size=25,
)


def prepared(
    metadata: TransactionMetadata, step: str, keys: frozenset[TopicPartition], now_ms: int
) -> Transition | None:
    match step:
        case "init":
            return metadata.prepare_increment_producer_epoch(1000, None, now_ms)
        case "again":
            epoch = metadata.producer_epoch
            return metadata.prepare_increment_producer_epoch(1000, epoch, now_ms)
        case "rotate":
            return metadata.prepare_producer_id_rotation(
                metadata.producer_id + 1, 1000, now_ms, records_last_epoch=True
            )
        case "add":
            return metadata.prepare_add_partitions(keys, now_ms)
        case "commit" | "abort":
            return metadata.prepare_decision(is_commit=step == "commit", now_ms=now_ms)
        case "fence":
            fence = metadata.prepare_fence_producer_epoch()
            metadata.adopt_fenced_epoch(fence.producer_epoch)
            return metadata.prepare_decision(is_commit=False, now_ms=now_ms)
        case _:
            metadata.remove_partitions(metadata.partitions)
            return metadata.prepare_complete(now_ms)


@given(STEPS)
def test_the_log_gives_the_state_again(
    steps: list[tuple[str, frozenset[TopicPartition], bool]],
) -> None:
    metadata = TransactionMetadata("t", 5, 1000, 0)
    log = LoadedTransactions()
    former = (5, -1)
    for now_ms, (step, keys, is_stored) in enumerate(steps, start=1):
        before = metadata.state
        try:
            transition = prepared(metadata, step, keys, now_ms)
        except IllegalTransitionError:
            assert (metadata.pending_state, metadata.state) == (None, before)
            continue
        assert transition is not None
        assert before in PREVIOUS[transition.state]
        if step != "fence" and not is_stored:
            metadata.pending_state = None  # the append has failed
            continue
        value = transaction_value(transition)
        log.take_in(new_batch([(transaction_key("t"), value)], now_ms))
        metadata.complete_transition(transition)
        assert fields(log.transactions()["t"]) == fields(metadata)
        current = metadata.producer_id, metadata.producer_epoch
        assert current >= former, "of one producer id the epoch never falls"
        former = current
        assert bool(metadata.partitions) <= (metadata.state not in IDLE)


@given(st.sampled_from(TransactionState), st.sampled_from(TransactionState))
def test_a_state_is_entered_from_its_previous_states_only(
    state: TransactionState, target: TransactionState
) -> None:
    metadata = TransactionMetadata(
        "t", 5, 1000, 0, producer_epoch=3, state=state, start_timestamp=1
    )
    steps = {
        TransactionState.EMPTY: "init",
        TransactionState.ONGOING: "add",
        TransactionState.PREPARE_COMMIT: "commit",
        TransactionState.COMPLETE_COMMIT: "complete",
    }
    if target not in steps:
        return
    is_complete = target is TransactionState.COMPLETE_COMMIT
    allowed = state in (PREPARED if is_complete else PREVIOUS[target])
    try:
        transition = prepared(metadata, steps[target], frozenset(), 9)
    except IllegalTransitionError:
        assert not allowed
    else:
        assert allowed
        assert transition is not None
        metadata.complete_transition(transition)
        assert (metadata.state, metadata.pending_state) == (transition.state, None)


def test_a_tombstone_removes_the_id() -> None:
    metadata = TransactionMetadata("t", 5, 1000, 0)
    transition = metadata.prepare_increment_producer_epoch(1000, None, 1)
    assert transition is not None
    log = LoadedTransactions()
    key = transaction_key("t")
    log.take_in(new_batch([(key, transaction_value(transition)), (b"\0\7later", b"")], 1))
    assert list(log.transactions()) == ["t"]
    log.take_in(new_batch([(key, None)], 2))
    assert log.transactions() == {}
