"""The last reads of committed records end at the last stable offset, and name the transaction that holds it."""

from __future__ import annotations

import asyncio
from random import Random

import msgspec

from nemesis.history.events import Event, Kind
from nemesis.history.recorder import Recorder
from nemesis.interfaces.cluster import bootstrap
from nemesis.workloads.base import WorkloadContext
from nemesis.workloads.kafka.record_batch import NewRecord
from nemesis.workloads.record_values import new_record
from nemesis.workloads.transactions import Transactions, TransactionsOptions
from tests.workloads.transaction_bench import Bench, on_bench

FINAL_S = 15.0
TP = ("orders-0", 0)


class Lines:
    """What all processes of a workload record."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def recorder(self, process: str) -> Recorder:
        loop = asyncio.get_running_loop()
        return Recorder(self._lines.append, process=process, clock=lambda: int(loop.time() * 1e9))

    def operations(self, f: str) -> list[Event]:
        """The completions of these operations."""
        decoded = [msgspec.json.decode(line, type=Event) for line in self._lines]
        return [event for event in decoded if event.f == f and event.kind != Kind.INVOKE]


def record(value: int) -> NewRecord:
    """A record of the workload."""
    return new_record(value, TransactionsOptions().record_shape, b"transaction")


async def workload_on(bench: Bench, lines: Lines) -> Transactions:
    """A workload with topics and without any processes of its own."""
    cluster = bench.context.runtime.cluster
    context = WorkloadContext(
        bootstrap=[(address.host, address.port) for address in bootstrap(cluster)],
        client_hosts=[cluster.client_host(cluster.clients[0])],
        recorder=lines.recorder,
        rng=Random(1),
        codec=cluster.codec,
    )
    made = Transactions(context, {"topics": 2, "transactors": 1, "transactional_ids": 1})
    await made.setup(20.0)
    return made


def test_an_open_transaction_is_named_with_its_producer_and_first_offset() -> None:
    async def test(bench: Bench) -> None:
        lines = Lines()
        workload = await workload_on(bench, lines)
        producer = await bench.producer()
        await producer.add_partitions([TP])
        await producer.send(*TP, [record(1)])
        await producer.end(is_commit=True)
        await producer.add_partitions([TP])
        opened = await producer.send(*TP, [record(2)])
        await producer.send(*TP, [record(3)])
        await workload.final_reads(FINAL_S)
        (asked,) = lines.operations("open-transaction")
        assert asked.kind == Kind.OK
        assert (asked.topic, asked.partition, asked.process) == (*TP, "committed")
        assert (asked.producer_id, asked.producer_epoch) == producer.identity[1:]
        assert asked.first_offset == asked.last_stable_offset == opened.offset == 2
        # The last producers have committed more.
        assert (asked.high_watermark or 0) >= opened.offset + 2
        assert asked.wall_ms is not None
        assert asked.wall_ms > 0

    on_bench(test)


def test_without_an_open_transaction_the_leader_is_not_asked() -> None:
    async def test(bench: Bench) -> None:
        lines = Lines()
        workload = await workload_on(bench, lines)
        await workload.final_reads(FINAL_S)
        assert lines.operations("poll")
        assert lines.operations("open-transaction") == []

    on_bench(test)
