"""transactions: producers write to several partitions in transactions, while coordinators and leaders fail and move.

* A transactor writes some records to some partitions in one transaction, and commits or aborts it. Several of them
  share a transactional id: each that begins fences the former one (``transactors``).
* A transformer reads committed records of the first topic as a member of a group, and writes a record for each to
  another topic, in one transaction with its position. The group assigns the partitions (``transformers``). Several
  processes share a transactional id, too, and those that share the first one are one static member.
* Producers and consumers of ``produce-consume`` act beside them; with ``committed_consumers`` some of the consumers
  read committed records only.

At the end a last producer of each transactional id aborts what is open, so that all transactions are decided. Then all
partitions are read to their end: all records, and committed records by the process ``committed``. What still holds a
last stable offset then is recorded.

Topics cannot be compacted (``keys``): checkers of transactions take each committed record for one that readers are
given, and transactional records would need keys in the history.

Operations and events: ``nemesis.history.vocabulary.transactions``. Properties: ``nemesis.checkers.transactions``.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from nemesis.history.vocabulary.transactions import LAST_PRODUCER
from nemesis.workloads.base import NotReadyError, WorkloadContext
from nemesis.workloads.clients import find_leader
from nemesis.workloads.committed_reads import read_committed
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.consumer_coordinator import ConsumerCoordinator
from nemesis.workloads.kafka.implicit_transactions import transaction_version
from nemesis.workloads.kafka.transactional_producer import TransactionalProducer
from nemesis.workloads.member_requests import MemberRequests
from nemesis.workloads.partitions import TopicPartition
from nemesis.workloads.processes import Program
from nemesis.workloads.produce_consume import ProduceConsume
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions
from nemesis.workloads.producer_transactions import ProducerTransactions, TransactionNumbers
from nemesis.workloads.transactors import Transactor, TransactorSettings
from nemesis.workloads.transformer_members import TransformerMember
from nemesis.workloads.transformers import GROUP, Transformer, TransformerSettings

_Milliseconds = Annotated[int, Meta(ge=1, le=600_000)]
_SOURCE = "orders-0"
"""The topic that transformers read; they write to the others."""


class TransactionsOptions(
    ProduceConsumeOptions, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What a scenario may set, beside the load's options."""

    transactional_ids: Annotated[int, Meta(ge=1, le=100)] = 3
    """Transactional ids of the transactors."""
    transactors: Annotated[int, Meta(ge=1, le=100)] = 4
    """Processes that write transactions; those beyond the number of ids share an id with another process."""
    transform_ids: Annotated[int, Meta(ge=0, le=100)] = 2
    """Transactional ids of the transformers; 0: no transformers."""
    transformers: Annotated[int, Meta(ge=1, le=100)] = 3
    """Processes that consume the first topic as a group and produce to the others. They share the `transform_ids`."""
    session_timeout_ms: _Milliseconds = 3_000
    """The session time-out of transformers; at least the brokers' ``group.min.session.timeout.ms``, at most
    ``delivery_timeout_ms``."""
    rebalance_timeout_ms: _Milliseconds = 3_000
    """In a rebalance, the coordinator waits this long for transformers to join again."""
    heartbeat_interval_ms: _Milliseconds = 500
    """Milliseconds between heartbeats of a transformer. It sends none during a transaction."""
    transaction_interval_ms: _Milliseconds = 200
    """A transactor or a transformer begins at most one transaction in this many milliseconds."""
    transaction_timeout_ms: _Milliseconds = 5_000
    """A coordinator aborts a transaction after this long; at most ``transaction.max.timeout.ms`` of the brokers."""
    transaction_partitions: Annotated[int, Meta(ge=1, le=100)] = 3
    """The most partitions to which a transactor writes in one transaction."""
    transaction_records: Annotated[int, Meta(ge=1, le=100)] = 3
    """The most records that a transactor writes to one partition in one transaction."""
    renews_in_doubt: bool = True
    """After an unanswered request, producers take a new epoch; ``false``: they repeat it as Kafka's producers."""

    def __post_init__(self) -> None:
        """Refuse what contradicts itself; msgspec makes a ``ValidationError`` of the error."""
        super().__post_init__()
        if self.keys:
            raise ValueError(f"keys: expected 0 with transactions, got {self.keys}")
        if self.transform_ids and self.topics < 2:
            raise ValueError(f"topics: expected 2 or more with transformers, got {self.topics}")
        if self.transform_ids and self.session_timeout_ms > self.delivery_timeout_ms:
            # Else a member whose commit is in doubt may read its old position from a former coordinator.
            raise ValueError(
                f"session_timeout_ms: expected at most delivery_timeout_ms ({self.delivery_timeout_ms}) with "
                f"transformers, got {self.session_timeout_ms}"
            )


class Transactions(ProduceConsume):
    """The workload ``transactions``; see the module."""

    name: ClassVar = "transactions"
    options_type: ClassVar = TransactionsOptions
    _options: TransactionsOptions

    def __init__(self, context: WorkloadContext, options: Mapping[str, Any]) -> None:
        super().__init__(context, options)
        chosen = self._options
        self._numbers = TransactionNumbers(
            self._log, count(), self._values, count(), chosen.record_shape
        )
        self._transactor_settings = TransactorSettings(
            interval_ms=chosen.transaction_interval_ms,
            most_partitions=chosen.transaction_partitions,
            most_records=chosen.transaction_records,
            renews_in_doubt=chosen.renews_in_doubt,
            partitions=self._partitions,
            permits=self._context.permits,
        )
        self._transformer_settings = TransformerSettings(
            interval_ms=chosen.transaction_interval_ms,
            reads=self._reads,
            shape=chosen.record_shape,
            outputs=self._outputs,
            renews_in_doubt=chosen.renews_in_doubt,
            permits=self._context.permits,
        )
        self._polls: defaultdict[str, count[int]] = defaultdict(lambda: count(1))
        """By process the numbers of the processes to which its polls belong."""
        self._transaction_version = 0
        """Of the cluster, as ``setup`` has learned it."""

    async def setup(self, timeout_s: float) -> None:
        """Also learn which requests the cluster's transactions need."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        await super().setup(timeout_s)
        try:
            async with asyncio.timeout_at(deadline):
                while not await self._learn_transaction_version():
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise NotReadyError(f"no broker answered ApiVersions within {timeout_s:g} s") from None

    def _programs(self) -> Iterator[tuple[str, Program]]:
        yield from super()._programs()
        options = self._options
        for index in range(options.transactors):
            name = f"transactor-{index}"
            yield name, partial(self._run_transactor, name, index % options.transactional_ids)
        for index in range(options.transformers if options.transform_ids else 0):
            name = f"transformer-{index}"
            yield name, partial(self._run_transformer, name, index % options.transform_ids)

    async def final_reads(self, timeout_s: float) -> None:
        """Let every transaction be decided, commit a last one of each id, then read all partitions to their end."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        await self._learn_partitions(deadline)
        ids = [*self._transactor_ids, *self._transformer_ids]
        known = self._partitions.known
        await asyncio.gather(
            *(
                self._commit_last(index, name, known[index % len(known)], deadline)
                for index, name in enumerate(ids if known else [])
            )
        )
        await asyncio.gather(
            self._final_reads.read_all(known, deadline),
            read_committed(self._context, self._clients, self._reads, self._log, known, deadline),
        )

    @property
    def _transactor_ids(self) -> list[str]:
        return [f"writes-{index}" for index in range(self._options.transactional_ids)]

    @property
    def _transformer_ids(self) -> list[str]:
        return [f"transforms-{index}" for index in range(self._options.transform_ids)]

    def _outputs(self) -> list[TopicPartition]:
        return [tp for tp in self._partitions.known if tp[0] != _SOURCE]

    async def _learn_transaction_version(self) -> bool:
        process = "transactions-setup"
        client = self._clients.client(process)
        columns = {"f": "transaction-version"}
        with self._log.operation(self._context.recorder(process), columns) as operation:
            version = await transaction_version(client, self._clients.timeout_s)
            operation.ok(count=version)
            self._transaction_version = version
        client.close()
        return operation.succeeded

    def _run_transactor(self, name: str, index: int) -> Coroutine[Any, Any, None]:
        return Transactor(
            name,
            self._transactor_settings,
            new_client=partial(self._clients.client, name),
            new_producer=partial(self._producer, name, self._transactor_ids[index]),
            rng=self._clients.rng(),
        ).run()

    def _run_transformer(self, name: str, index: int) -> Coroutine[Any, Any, None]:
        polls, transactional_id = self._polls[name], self._transformer_ids[index]
        instance = transactional_id if index == 0 else None
        return Transformer(
            name,
            self._transformer_settings,
            new_client=partial(self._clients.client, name),
            new_producer=partial(self._producer, name, transactional_id),
            new_member=partial(self._member, name, instance),
            new_recorder=lambda: self._context.recorder(f"{name}.{next(polls)}"),
            rng=self._clients.rng(),
        ).run()

    def _member(self, process: str, instance: str | None, client: KafkaClient) -> TransformerMember:
        options = self._options
        coordinator = ConsumerCoordinator(
            client,
            GROUP,
            [_SOURCE],
            instance=instance,
            session_timeout_ms=options.session_timeout_ms,
            rebalance_timeout_ms=options.rebalance_timeout_ms,
            codec=self._context.codec,
        )
        requests = MemberRequests(
            client,
            coordinator,
            operations=self._log,
            recorder=self._context.recorder(process),
            timeout_s=self._clients.timeout_s,
            leads=lambda _: None,
        )
        return TransformerMember(
            coordinator,
            requests,
            timeout_s=self._clients.timeout_s,
            heartbeat_interval_s=options.heartbeat_interval_ms / 1000,
        )

    def _producer(
        self, process: str, transactional_id: str, client: KafkaClient
    ) -> ProducerTransactions:
        options = self._options
        producer = TransactionalProducer(
            client,
            transactional_id,
            request_timeout_s=self._clients.timeout_s,
            delivery_timeout_s=options.delivery_timeout_ms / 1000,
            transaction_timeout_ms=options.transaction_timeout_ms,
            transaction_version=self._transaction_version,
        )
        recorder = self._context.recorder(process)
        return ProducerTransactions(producer, client, self._numbers, recorder)

    async def _commit_last(
        self, index: int, transactional_id: str, tp: TopicPartition, deadline: float
    ) -> None:
        """Become the last producer of an id, so that an open transaction is aborted, and commit one of its own.

        Give up at the deadline.
        """
        process = f"{LAST_PRODUCER}{index}"
        client = self._clients.client(process)
        transactions = self._producer(process, transactional_id, client)
        try:
            async with asyncio.timeout_at(deadline):
                while not await self._is_committed(transactions, client, tp):
                    await asyncio.sleep(0.1)
        except TimeoutError:
            pass  # the final reads end at the last stable offset then
        finally:
            client.close()

    @staticmethod
    async def _is_committed(
        transactions: ProducerTransactions, client: KafkaClient, tp: TopicPartition
    ) -> bool:
        """Begin as a new producer, write a record and commit it; return whether all of that succeeded."""
        if client.metadata.leader(*tp) is None:
            await find_leader(client, tp)
        return (
            await transactions.initialize()
            and await transactions.begin([tp])
            and await transactions.send(tp)
            and await transactions.end(is_commit=True)
        )
