"""produce-consume: producers of unique values, consumers that follow, topics created while faults strike.

* Every record has a number, its value, that no other record of the run has: one read tells which send it came from.
  With ``keys``, its key is one of so many, and topics are created with ``cleanup.policy=compact``.
* A producer sends one record at a time with ``acks=all``, idempotence off, one attempt; it goes around the
  partitions and leaves one alone for a moment after a failure there. So many as ``idempotent_producers`` says send
  idempotently instead, and again and again until ``delivery_timeout_ms`` is over: one operation, several attempts.
  With ``batch_records`` and ``batch_partitions`` a request brings several records, each an operation of its own.
* Producers ask for the acknowledgements of ``acks`` in turn. Under 0 and 1 a cluster may lose what it acknowledged.
* Batches are compressed by the codecs of ``compression``. With ``headers``, ``tombstone_percent`` or
  ``null_key_percent`` a reader compares key, value and headers with what the record's number says of them.
  With ``large_record_every`` some records are larger than a fetch.
* A consumer follows its share of the partitions from offset 0, one fetch at a time, ``auto.offset.reset=none``.
  Some of them read from any replica, whose high watermark may lag behind the leader's.
  With ``poll_partitions`` a fetch asks for several partitions of one broker, each an operation of its own; with
  ``fetch_sessions`` it names what differs from the fetch before it.
* An administrator creates further topics during the run; producers and consumers take them up. With
  ``administration_clients`` topics are deleted and created again, grown, moved and changed while they are used.
* At the end the final readers read every partition from its start until they reach the leader's high watermark.

Kafka's protocol settings are stated in ``nemesis.workloads.kafka``; the history's vocabulary in
``nemesis.history.events``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, ClassVar, Final

import msgspec

from nemesis.history.recorder import Recorder
from nemesis.workloads.admin_requests import AdminRequests
from nemesis.workloads.administrators import Administrators
from nemesis.workloads.base import WorkloadContext, WorkloadError
from nemesis.workloads.clients import Clients
from nemesis.workloads.consumers import Consumers
from nemesis.workloads.final_questions import FinalQuestions
from nemesis.workloads.final_reads import FinalReads
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.log_dir_moves import move_between_log_dirs_again_and_again
from nemesis.workloads.operations import OperationLog
from nemesis.workloads.partitions import KnownPartitions, TopicPartition
from nemesis.workloads.processes import ClientTable, Program
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions
from nemesis.workloads.producers import Producers
from nemesis.workloads.querying import Querying
from nemesis.workloads.reads import Reads
from nemesis.workloads.record_deletion import delete_records_again_and_again
from nemesis.workloads.topic_creation import TopicCreation

SETTLE_S: Final = 1.0
"""Between the last request about a topic and the final reads: what was answered is then known to every broker."""


class ProduceConsume:
    """The workload ``produce-consume``, and the load of other workloads; see the module."""

    name: ClassVar = "produce-consume"
    options_type: ClassVar[type[ProduceConsumeOptions]] = ProduceConsumeOptions

    def __init__(self, context: WorkloadContext, options: Mapping[str, Any]) -> None:
        try:
            self._options = msgspec.convert(dict(options), self.options_type, strict=True)
        except msgspec.ValidationError as error:
            raise WorkloadError(f"options of workload {self.name}: {error}") from None
        self.processes = ClientTable(self._programs, groups=self._groups, leader=self._leader)
        context = self._context = replace(context, permits=self.processes.numbered(context.permits))
        self._partitions = KnownPartitions()
        self._log = OperationLog()
        self._values = count()
        self._clients = Clients(context, self._options, self.processes.traffic)
        reads = self._reads = Reads(self._options, clients=self._clients, log=self._log)
        self._producers = Producers(
            context,
            self._options,
            clients=self._clients,
            partitions=self._partitions,
            log=self._log,
            values=self._values,
        )
        self._consumers = Consumers(
            context,
            self._options,
            clients=self._clients,
            partitions=self._partitions,
            reads=reads,
        )
        self._topic_creation = TopicCreation(
            context,
            self._options,
            clients=self._clients,
            partitions=self._partitions,
            log=self._log,
            on_created=self._on_created,
        )
        self._administrators = Administrators(
            context,
            self._options,
            clients=self._clients,
            partitions=self._partitions,
            topic_creation=self._topic_creation,
            admin_requests=self._admin_requests,
        )
        self._querying = Querying(
            context, clients=self._clients, partitions=self._partitions, log=self._log
        )
        self._final_reads = FinalReads(context, clients=self._clients, reads=reads)
        self._final_questions = FinalQuestions(context, clients=self._clients, log=self._log)

    @property
    def replication_factor(self) -> int:
        return self._options.replication_factor

    @property
    def operations(self) -> int:
        return self._log.completed

    def topic_partitions(self) -> list[TopicPartition]:
        return list(self._partitions.known)

    async def setup(self, timeout_s: float) -> None:
        """Create the initial topics and wait for their leaders; raises ``NotReadyError`` after ``timeout_s``."""
        await self._topic_creation.create_initial(timeout_s)

    def start(self) -> None:
        self._final_questions.begin()
        self.processes.start_all()

    async def stop(self) -> None:
        for error in await self.processes.stop():
            raise WorkloadError(f"a client process failed: {error!r}") from error

    def _programs(self) -> Iterator[tuple[str, Program]]:
        """Name every client process, and how it begins; nothing is made or drawn before it does."""
        options = self._options
        for index in range(options.producers):
            name = f"producer-{index}"
            yield name, partial(self._producers.run, name, index)
        for index in range(options.consumers):
            name = f"consumer-{index}"
            yield name, partial(self._consumers.run, name, index)
        if options.delete_records_interval_ms:
            yield "admin-1", partial(self._delete_records, "admin-1")
        if options.move_log_dirs_interval_ms:
            yield "admin-2", partial(self._move_log_dirs, "admin-2")
        if options.query_interval_ms:
            yield "query-0", partial(self._querying.run, "query-0", options.query_interval_ms)
        if options.later_topics:
            yield "admin-0", partial(self._topic_creation.create_later, "admin-0")
        for index in range(options.administration_clients):
            name = f"administrator-{index}"
            yield name, partial(self._administrators.run, name)

    @property
    def _groups(self) -> list[str]:
        """The groups of consumers."""
        return []

    def _leader(self, group: str) -> str | None:
        """Return the process whose member leads the group, as far as it is known."""
        del group
        return None

    async def final_reads(self, timeout_s: float) -> None:
        """Read all partitions, a few at a time, then ask all replicas for offsets by time.

        A partition that cannot be read to its end is recorded with the error.
        """
        deadline = asyncio.get_running_loop().time() + timeout_s
        await self._learn_partitions(deadline)
        await self._final_reads.read_all(self._partitions.known, deadline)
        await self._final_questions.ask_all(self._partitions.known, deadline)

    async def _learn_partitions(self, deadline: float) -> None:
        """Know the partitions that exist, after all that administrators have asked for."""
        if self._changes_topics:
            await asyncio.sleep(SETTLE_S)
        self._update_partitions(await self._final_reads.existing_topics(deadline))

    async def _delete_records(self, process: str) -> None:
        await delete_records_again_and_again(
            self._admin_requests(process),
            self._partitions,
            interval_ms=self._options.delete_records_interval_ms,
            timeout_s=self._clients.timeout_s,
            rng=self._clients.rng(),
        )

    async def _move_log_dirs(self, process: str) -> None:
        await move_between_log_dirs_again_and_again(
            self._clients.admin(process),
            self._context.recorder(process),
            self._log,
            interval_ms=self._options.move_log_dirs_interval_ms,
            timeout_s=self._clients.timeout_s,
            rng=self._clients.rng(),
        )

    def _admin_requests(self, process: str) -> AdminRequests:
        """Return the requests of a new administrator."""
        return AdminRequests(
            self._clients.admin(process),
            self._context.recorder(process),
            self._log,
            timeout_s=self._clients.timeout_s,
        )

    def _on_created(self, client: KafkaAdmin, recorder: Recorder, topic: str) -> None:
        """Called when a topic has all its leaders."""
        # A later topic may have been moved by a fault before it is known to have leaders.
        if self._options.administration_clients and not self.processes.is_started:
            AdminRequests(client, recorder, self._log, timeout_s=self._clients.timeout_s).describe(
                topic
            )

    @property
    def _changes_topics(self) -> bool:
        """Whether topics are deleted or get partitions while clients use them."""
        return self._options.administration_clients > 0

    def _update_partitions(self, client: KafkaClient) -> None:
        """Add the partitions that exist before the final reads, and remove those of deleted topics."""
        if self._changes_topics:
            self._partitions.remove_absent(client)
        self._partitions.add_existing(client)
