"""What one log remembers of the producers that wrote to it, so that what is sent twice stands in it once (KIP-98).

The memory follows from the log: leader and followers learn it from the batches that they append, and whoever comes to
lead goes on with it. After a start or a truncation it is the newest snapshot not beyond the log's end, and the batches
from there on. A snapshot that cannot be read is deleted, and the one before it taken. Where segments have to be indexed
again (``transaction_index``), the newest snapshot not beyond the first of them is taken.

A producer is forgotten ``producer.id.expiration.ms`` after the time of its last batch or marker, but never while its
transaction is open.

Source: kafka's ProducerStateManager of Kafka 3.9. Where it differs: snapshots are found by looking into the directory,
none is written after a start or a truncation, and one is of use as long as the log's first segment does not begin
behind it, be the log start offset beyond it or not.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nemesis.reference.log.log_segment import LogSegment
from nemesis.reference.log.log_validator import AppendOrigin
from nemesis.reference.log.ongoing_transactions import OngoingTransactions
from nemesis.reference.log.producer_append_info import (
    AnalyzedAppend,
    OpenedTransaction,
    TransactionStep,
    Updates,
    analyzed,
    check_batch,
    check_verified,
)
from nemesis.reference.log.producer_snapshot_file import (
    decode_snapshot,
    encode_snapshot,
    snapshot_file_name,
    snapshot_offset,
)
from nemesis.reference.log.producer_state_entry import (
    NO_PRODUCER_ID,
    BatchMetadata,
    ProducerStateEntry,
    appended,
)
from nemesis.reference.log.recent_batches import RecentBatches
from nemesis.reference.log.transaction_index import TransactionIndex
from nemesis.reference.log.verification_state import VerificationGuard, VerificationStateEntry
from nemesis.reference.model import AbortedTransaction
from nemesis.reference.ports import Disk, WallClock
from nemesis.reference.protocol.record_batch import RecordBatchHeader

PRODUCER_ID_EXPIRATION_MS: Final = 86_400_000
"""Kafka's default of ``producer.id.expiration.ms``."""
_logger = logging.getLogger(__name__)


class ProducerStateManager:
    """One log's producers. Methods that touch the disk raise OSError."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        *,
        expiration_ms: int,
        wall_clock: WallClock,
        transaction_verification_enabled: bool = False,
    ) -> None:
        self._files = disk.files
        self._directories = disk.directories
        self._atomic = disk.atomic
        self._directory = directory
        self._expiration_ms = expiration_ms
        self._wall_clock = wall_clock
        self._verification_enabled = transaction_verification_enabled
        self._producers: dict[int, ProducerStateEntry] = {}
        self._verifications: dict[int, VerificationStateEntry] = {}
        """Those under way, by producer id."""
        self.transactions = OngoingTransactions()
        self._last_snapshot_offset = 0

    @property
    def active_producers(self) -> Mapping[int, ProducerStateEntry]:
        """Those that are remembered, by id."""
        return self._producers

    @property
    def end_offset(self) -> int:
        """The offset behind the last batch that is remembered of any producer; 0 without any."""
        entries = self._producers.values()
        return (
            max((entry.batches[-1].last_offset for entry in entries if entry.batches), default=-1)
            + 1
        )

    # Appending

    def maybe_start_verification(
        self, producer_id: int, sequence: int, epoch: int
    ) -> VerificationGuard | None:
        """Return the guard with which a batch may open a transaction; None if the producer has one open."""
        entry = self._producers.get(producer_id)
        if entry is not None and entry.has_open_transaction:
            return None
        verification = self._verifications.get(producer_id)
        if verification is None:
            verification = VerificationStateEntry(self._wall_clock(), sequence, epoch)
            self._verifications[producer_id] = verification
        verification.note_batch(sequence, epoch)
        return verification.guard

    def find_duplicate(self, headers: Iterable[RecordBatchHeader]) -> BatchMetadata | None:
        """Return the batch that is in the log already, if a client sends one of its last five again."""
        for header in headers:
            entry = self._producers.get(header.producer_id)
            if entry is not None and (duplicate := entry.find_duplicate(header)) is not None:
                return duplicate
        return None

    def analyzed(
        self,
        records: bytes,
        headers: Sequence[RecordBatchHeader],
        origin: AppendOrigin,
        guard: VerificationGuard | None = None,
    ) -> AnalyzedAppend:
        """Return what batches make of their producers, some of which are part of transactions.

        The verifications of the latter end. Raises what ``producer_append_info.analyzed`` raises, and
        InvalidTxnStateError for a batch that opens a transaction without the guard of its verification.
        """
        verifications = self._verifications
        if self._verification_enabled and origin is not AppendOrigin.REPLICATION:
            for header in headers:
                producer_id = header.producer_id
                entry = self._producers.get(producer_id)
                check_verified(entry, header, verifications.get(producer_id), guard)
        append = analyzed(self._producers, records, headers, origin, verifications)
        if verifications:
            for header in headers:
                if header.is_transactional:
                    verifications.pop(header.producer_id, None)
        return append

    def validated(self, headers: Sequence[RecordBatchHeader]) -> Updates:
        """Return what a client's batches make of their producers; they have their offsets, and are of no transaction.

        Raises InvalidProducerEpochError, OutOfOrderSequenceError or InvalidTxnStateError.
        """
        updates: dict[int, ProducerStateEntry] = {}
        for header in headers:
            if (producer_id := header.producer_id) > NO_PRODUCER_ID and not header.is_control:
                before = updates.get(producer_id) or self._producers.get(producer_id)
                check_batch(before, header)
                updates[producer_id] = appended(before, header)
        return updates

    def replicated(self, headers: Iterable[RecordBatchHeader]) -> Updates:
        """Return what batches make of their producers that are in the leader's log, or in one's own: no checks.

        Markers are passed over: see ``analyzed``.
        """
        updates: dict[int, ProducerStateEntry] = {}
        for header in headers:
            if (producer_id := header.producer_id) > NO_PRODUCER_ID and not header.is_control:
                before = updates.get(producer_id) or self._producers.get(producer_id)
                updates[producer_id] = appended(before, header)
        return updates

    def update(self, updates: Updates) -> None:
        """Remember what ``validated`` or ``replicated`` returned: those batches are in the log now."""
        if updates:
            self._producers.update(updates)

    def track(self, steps: Iterable[TransactionStep], index: TransactionIndex | None) -> None:
        """Note the transactions that batches, which are in the log now, have opened or ended.

        The aborted ones go into the index of the segment that holds the batches; None if it has them already.
        """
        for step in steps:
            if isinstance(step, OpenedTransaction):
                self.transactions.open(step)
                continue
            last_stable_offset = self.transactions.complete(step)
            if step.is_aborted and index is not None:
                index.append(AbortedTransaction(*step[:3], last_stable_offset))

    def remove_expired_producers(self) -> None:
        """Forget those whose last batch or marker is ``producer.id.expiration.ms`` old and that have nothing open.

        Verifications that no batch has followed in this time are forgotten too.
        """
        now = self._wall_clock()
        expired = [
            producer_id
            for producer_id, entry in self._producers.items()
            if self._is_expired(entry, now)
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        abandoned = [
            producer_id
            for producer_id, verification in self._verifications.items()
            if now - verification.created_ms >= self._expiration_ms
        ]
        for producer_id in abandoned:
            del self._verifications[producer_id]

    # Snapshots

    def take_snapshot(self, log_end_offset: int) -> None:
        """Write down what is remembered of a log that ends there, unless that was done before."""
        if log_end_offset > self._last_snapshot_offset:
            path = f"{self._directory}/{snapshot_file_name(log_end_offset)}"
            self._atomic.replace(path, encode_snapshot(self._producers.values()))
            self._last_snapshot_offset = log_end_offset

    def delete_snapshots(self, segments: Iterable[LogSegment]) -> None:
        """Delete the snapshots that segments began with which are going to be deleted."""
        for segment in segments:
            self._delete_snapshot(segment.base_offset)

    def truncate_fully(self) -> None:
        """Forget everything: the log is emptied."""
        for offset in self._snapshot_offsets():
            self._delete_snapshot(offset)
        self._producers = {}
        self.transactions.reload((), 0)
        self._last_snapshot_offset = 0

    def rebuild(
        self,
        segments: Sequence[LogSegment],
        log_end_offset: int,
        walked: RecentBatches | None = None,
    ) -> None:
        """Remember what a log has that was opened or truncated: its newest snapshot, and the batches behind it.

        ``walked`` are those of the last segments, which somebody has looked at already. Snapshots beyond the log's end,
        or from before its first segment, are deleted.
        """
        walked = walked or RecentBatches(log_end_offset)
        outdated = [segment for segment in segments if segment.transactions.is_outdated]
        if outdated and (walked.has_transactions or outdated[0].base_offset < walked.start_offset):
            start = self._reload(
                segments[0].base_offset, log_end_offset, newest=outdated[0].base_offset
            )
            self._replay(segments, start)
        else:
            self._remember(segments, log_end_offset, walked)
        for segment in outdated:
            segment.transactions.complete()

    def _remember(
        self, segments: Sequence[LogSegment], log_end_offset: int, walked: RecentBatches
    ) -> None:
        missing_from = self._reload(segments[0].base_offset, log_end_offset, newest=log_end_offset)
        recent = RecentBatches(missing_from)
        for segment in segments:
            if missing_from < segment.next_offset and segment.base_offset < walked.start_offset:
                recent.add(segment.batches_from(segment.position_of(missing_from)))
        if recent.has_transactions or walked.has_transactions:
            self._replay(segments, missing_from)
            return
        for batches in (recent, walked):
            self.update(self.replicated(batches.behind(missing_from)))

    def _replay(self, segments: Iterable[LogSegment], start_offset: int) -> None:
        """Take in each batch from the offset on, with the markers."""
        for segment in segments:
            if segment.next_offset <= start_offset:
                continue
            index = segment.transactions if segment.transactions.is_outdated else None
            for header in segment.batches_from(segment.position_of(start_offset)):
                if header.base_offset >= start_offset:
                    records = segment.read_batch(header) if header.is_control else b""
                    headers = (header._replace(position=0),)
                    append = self.analyzed(records, headers, AppendOrigin.REPLICATION)
                    self.update(append.producers)
                    self.track(append.transactions, index)

    def _reload(self, first_offset: int, log_end_offset: int, *, newest: int) -> int:
        """Go back to the newest snapshot that is not beyond ``newest``; return its offset, or the log's first one."""
        self._producers, self._last_snapshot_offset = {}, first_offset
        usable = []
        for offset in self._snapshot_offsets():
            if first_offset <= offset <= log_end_offset:
                if offset <= newest:
                    usable.append(offset)
            else:
                self._delete_snapshot(offset)
        while usable:
            offset = usable.pop()
            if (entries := self._read_snapshot(offset)) is not None:
                now = self._wall_clock()
                living = (entry for entry in entries if not self._is_expired(entry, now))
                self._producers = {entry.producer_id: entry for entry in living}
                self._last_snapshot_offset = offset
                break
        self.transactions.reload(self._producers.values(), log_end_offset)
        return self._last_snapshot_offset

    def _snapshot_offsets(self) -> list[int]:
        names = self._directories.list(self._directory)
        offsets = (snapshot_offset(name) for name in names)
        return sorted(offset for offset in offsets if offset is not None)

    def _delete_snapshot(self, offset: int) -> None:
        self._directories.remove(f"{self._directory}/{snapshot_file_name(offset)}")

    def _read_snapshot(self, offset: int) -> list[ProducerStateEntry] | None:
        path = f"{self._directory}/{snapshot_file_name(offset)}"
        data = self._files.read(path, 0, self._files.size(path))
        self._files.close(path)
        try:
            return decode_snapshot(data)
        except ValueError as error:
            _logger.warning("%s is deleted: %s", path, error)
            self._directories.remove(path)
            return None

    def _is_expired(self, entry: ProducerStateEntry, now: int) -> bool:
        return now - entry.last_timestamp >= self._expiration_ms and not entry.has_open_transaction
