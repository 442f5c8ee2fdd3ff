"""Compacts logs in the background: so many tasks as ``log.cleaner.threads`` says, each one log at a time.

A task takes the filthiest log that there is (``log_cleaner_manager``), cleans it (``cleaner``), and looks for the next
one at once; when there is none it waits ``log.cleaner.backoff.ms``. The tasks begin with the first compacted log.

Source: kafka.log.LogCleaner and CleanerThread of Kafka 3.9. Where it differs: segments of compacted logs that are too
old or too many are deleted by the job that deletes them of all others. Limit: no
``log.cleaner.io.max.bytes.per.second``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.cleaner import CleanedSegments, Cleaner, LogToClean
from nemesis.reference.log.errors import KafkaStorageError, LogError, RecordError
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_cleaner_manager import LogCleanerManager, LogCleaningAbortedError
from nemesis.reference.ports import WallClock
from nemesis.reference.trace import Kind, Tracer

OnStorageError = Callable[[KafkaStorageError], None]
_logger = logging.getLogger(__name__)


class LogCleaner:
    """See the module. ``shutdown`` leaves unfinished files, which the next cleaning or the next start removes."""

    def __init__(
        self,
        config: KafkaConfig,
        manager: LogCleanerManager,
        *,
        wall_clock: WallClock,
        tracer: Tracer,
    ) -> None:
        self._config = config
        self._manager = manager
        self._tracer = tracer
        self._on_storage_error: OnStorageError | None = None
        self._cleaner = Cleaner(
            offset_map_capacity=config.offset_map_capacity,
            io_buffer_size=config.log_cleaner_io_buffer_size,
            wall_clock=wall_clock,
            on_cleaned=self._trace,
        )
        self._threads: list[asyncio.Task[None]] = []

    def startup(self, logs: Iterable[Log], on_storage_error: OnStorageError) -> None:
        """Start the tasks as soon as there is a log for them, unless ``log.cleaner.enable`` is false."""
        self._on_storage_error = on_storage_error
        for log in logs:
            self.attend_to(log)

    def attend_to(self, log: Log) -> None:
        """The log is new, or its settings are."""
        is_open = self._on_storage_error is not None and self._config.log_cleaner_enable
        if is_open and log.config.is_compact and not self._threads:
            loop = asyncio.get_running_loop()
            self._threads = [
                loop.create_task(self._run(name), name=name)
                for name in (
                    f"kafka-log-cleaner-thread-{number}"
                    for number in range(self._config.log_cleaner_threads)
                )
            ]

    def note_gaps(self, log: Log) -> None:
        """Let the cleaner's checkpoint say of a log that it may have gaps. Raises KafkaStorageError."""
        self._manager.note_gaps(log)

    def abort_cleaning(self, log: Log) -> None:
        """Give up the cleaning of the log, if there is one: it is truncated, or goes."""
        self._manager.abort_cleaning(log)

    def is_cleaning(self, log: Log) -> bool:
        return self._manager.is_in_progress(log)

    def shutdown(self) -> None:
        """Stop the tasks where they are."""
        for thread in self._threads:
            thread.cancel()

    async def clean_filthiest_log(self) -> bool:
        """Clean one log; return whether there was one to be cleaned."""
        cleanable = self._manager.grab_filthiest_compacted_log()
        if cleanable is None:
            return False
        try:
            await self._clean(cleanable)
        except LogCleaningAbortedError:
            _logger.info("%s is not cleaned any further", cleanable.log.topic_partition)
        except KafkaStorageError as error:
            self._manager.mark_uncleanable(cleanable)
            if self._on_storage_error is None:
                raise
            self._on_storage_error(error)
        except (LogError, RecordError) as error:
            _logger.warning("%s is not cleaned: %s", cleanable.log.topic_partition, error)
            self._manager.mark_uncleanable(cleanable)
        except Exception:
            # A bug of ours: the other logs must not suffer from it.
            _logger.exception("%s is not cleaned", cleanable.log.topic_partition)
            self._manager.mark_uncleanable(cleanable)
        return True

    async def _run(self, name: str) -> None:
        while True:
            if not await self.clean_filthiest_log():
                self._tracer.event(Kind.JOB_STARTED, step=name)
                await asyncio.sleep(self._config.log_cleaner_backoff_ms / 1000)

    async def _clean(self, cleanable: LogToClean) -> None:
        check_done = partial(self._manager.check_done, cleanable)
        end_offset = await self._cleaner.clean(cleanable, check_done)
        self._manager.done_cleaning(cleanable, end_offset)

    def _trace(self, log: Log, cleaned: CleanedSegments) -> None:
        tp = {
            "topic": log.topic_partition.topic,
            "topic_id": None if log.topic_id is None else str(log.topic_id),
            "partition": log.topic_partition.partition,
        }
        for header in cleaned.rewritten:
            self._tracer.event(
                Kind.BATCH_CLEANED,
                **tp,
                leader_epoch=header.partition_leader_epoch,
                offset=header.base_offset,
                last_offset=header.last_offset,
                crc=header.crc,
            )
        self._tracer.event(
            Kind.LOG_CLEANED,
            **tp,
            offset=cleaned.base_offset,
            last_offset=cleaned.last_offset,
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            high_watermark=cleaned.high_watermark,
            bytes_before=cleaned.bytes_before,
            bytes_after=cleaned.bytes_after,
            wall_ms=cleaned.wall_ms,
        )
