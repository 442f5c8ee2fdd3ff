"""Is the cluster whole again after the heal, and since when?

Nine checks. The first seven are looked at again and again from the end of the faults' time on, so
that the time of recovery is known: every broker is registered; a controller exists; every partition
has a leader; every ISR is full; no deletion of a topic and no reassignment is left to be finished;
every broker's Metadata equals ZooKeeper (``convergence_checks``). The last two act: a produce with
``acks=all`` and a fetch of it succeed on every partition that clients may write to. They run after
the final reads, so that their records disturb no reader. At the very end
``nemesis.running.end_state`` records what is there.

A check's time is when it began to hold for good, in milliseconds from the heal: the moment when the
faults' time was over and the last fault was undone (0: it held then). What does not hold when the
time is over is recorded with what is wrong; what the harness could not look at is no finding about
the cluster, and its error begins with ``HARNESS``.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from nemesis.faults.cluster_view import ClusterSnapshot, ClusterView
from nemesis.history.events import NO_ERROR, Kind
from nemesis.history.recorder import Recorder
from nemesis.interfaces.cluster import bootstrap
from nemesis.interfaces.runtime import Runtime
from nemesis.running.convergence_checks import (
    Wrong,
    wrong_brokers,
    wrong_controller,
    wrong_deletions,
    wrong_isrs,
    wrong_leaders,
    wrong_metadata,
    wrong_reassignments,
)
from nemesis.running.end_state import BrokerViews, EndState
from nemesis.support.errors import HarnessError
from nemesis.support.node_names import id_of
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.partitions import INTERNAL_TOPICS

POLL_INTERVAL_S = 0.4
WHOLE_POLL_INTERVAL_S = 1.0
"""While all holds: nobody's recovery is timed then."""
OPERATION_TIMEOUT_S = 2.0
LEAST_USE_S = 2.0
"""For the attempts at each partition, also when the time for convergence is over."""
RETRY_INTERVAL_S = 0.2
CLIENT_ID = "nemesis-convergence"
HARNESS = "HARNESS: "


class ConvergenceWatch:
    """Looks at the cluster from the end of the faults' time on; ``finish`` decides and records."""

    CHECKS = (
        "brokers",
        "controller",
        "leaders",
        "isr",
        "deletions",
        "reassignments",
        "metadata",
    )

    def __init__(
        self, runtime: Runtime, view: ClusterView, recorder: Recorder, rng: Random
    ) -> None:
        self._runtime = runtime
        self._view = view
        self._recorder = recorder
        self._rng = rng
        self._brokers = BrokerViews(runtime, rng)
        self._healed_at = 0.0
        self._wrong: dict[str, list[Wrong]] = {}
        self._whole_since: dict[str, float] = {}
        self._snapshot = ClusterSnapshot()
        self._blind: str | None = "it never looked"
        """Why the harness could not look, the last time."""

    async def watch(self) -> None:
        """Look until cancelled. Start it as a task when the faults' time is over."""
        self.healed(asyncio.get_running_loop().time())
        while True:
            try:
                await self.look()
            except HarnessError as error:  # what was seen before says nothing about now
                self._blind = str(error)
                self._whole_since.clear()
            await asyncio.sleep(WHOLE_POLL_INTERVAL_S if self.is_whole else POLL_INTERVAL_S)

    def healed(self, time_s: float) -> None:
        """Times count from here, a loop time, unless there was a later one."""
        self._healed_at = max(self._healed_at, time_s)

    @property
    def is_whole(self) -> bool:
        """Whether all that is only looked at holds now."""
        return len(self._whole_since) == len(self.CHECKS)

    async def look(self) -> None:
        """One look at everything; raises ``HarnessError`` when ZooKeeper does not answer the harness."""
        ids = [id_of(node) for node in self._runtime.cluster.brokers]
        answers = await asyncio.gather(
            *(self._brokers.metadata(node) for node in self._runtime.cluster.brokers)
        )
        snapshot = self._snapshot = await self._view.snapshot()
        now = asyncio.get_running_loop().time()
        self._blind = None
        self._wrong = {
            "brokers": wrong_brokers(snapshot, ids),
            "controller": wrong_controller(snapshot),
            "leaders": wrong_leaders(snapshot),
            "isr": wrong_isrs(snapshot),
            "deletions": wrong_deletions(snapshot),
            "reassignments": wrong_reassignments(snapshot),
            "metadata": wrong_metadata(snapshot, dict(zip(ids, answers, strict=True))),
        }
        for check, wrong in self._wrong.items():
            if wrong:
                self._whole_since.pop(check, None)
            else:
                self._whole_since.setdefault(check, now)

    async def finish(self, within_s: float) -> bool:
        """Wait until all holds or ``within_s`` from the heal is over, then produce, fetch, look and record.

        Returns whether the cluster converged. ``watch`` must still be running.
        """
        loop = asyncio.get_running_loop()
        deadline = max(self._healed_at + within_s, loop.time() + OPERATION_TIMEOUT_S)
        while not self.is_whole and loop.time() < deadline:
            await asyncio.sleep(POLL_INTERVAL_S / 4)
        has_converged = self.is_whole
        for check in self.CHECKS:
            unseen = [] if self._blind is None else [Wrong(HARNESS + self._blind)]
            self._record(check, unseen or self._wrong[check], self._whole_since.get(check))
        worked = await self._use_all(deadline)
        await EndState(self._runtime, self._view, self._recorder, self._brokers).record(deadline)
        return worked and has_converged

    async def _use_all(self, deadline: float) -> bool:
        hosts = self._runtime.cluster.client_host(self._runtime.cluster.clients[0])
        servers = [(a.host, a.port) for a in bootstrap(self._runtime.cluster)]
        client = KafkaClient(
            servers,
            client_id=CLIENT_ID,
            source_host=hosts,
            rng=Random(self._rng.getrandbits(64)),
            codec=self._runtime.cluster.codec,
        )
        worked = True
        partitions = sorted({*self._snapshot.partitions, *self._snapshot.unassigned})
        if not partitions and self._blind is not None:
            self._record("produce", [Wrong(f"{HARNESS}it knows no partition")], None)
        try:
            if partitions:  # an attempt without metadata fails whatever the cluster does
                await client.refresh_metadata()
            for tp in _writable(partitions):
                # A check that failed before has used up the time, which says nothing about this partition.
                least = asyncio.get_running_loop().time() + LEAST_USE_S
                worked &= await self._use(client, tp, max(deadline, least))
        finally:
            client.close()
        return worked

    async def _use(self, client: KafkaClient, tp: tuple[str, int], deadline: float) -> bool:
        """Produce one record to the partition and fetch it back, trying again until the deadline."""
        loop = asyncio.get_running_loop()
        error = ""
        stage, offset = "produce", -1
        while stage != "done":
            try:
                if stage == "produce":
                    sent = await client.send(
                        *tp,
                        [(b"convergence", b"convergence")],
                        acks=-1,
                        timeout_s=OPERATION_TIMEOUT_S,
                    )
                    offset = sent.offset
                    self._record("produce", [], loop.time(), tp)
                    stage = "fetch"
                polled = await client.poll(
                    *tp,
                    offset,
                    max_wait_ms=100,
                    max_bytes=65_536,
                    timeout_s=OPERATION_TIMEOUT_S,
                )
                if any(record.offset == offset for record in polled.records):
                    self._record("fetch", [], loop.time(), tp)
                    return True
                error = (
                    f"offset {offset} is not served, the high watermark is {polled.high_watermark}"
                )
            except KafkaError as failure:
                error = failure.name
            if loop.time() > deadline:
                break
            await asyncio.sleep(RETRY_INTERVAL_S)
            await client.refresh_metadata()
        self._record(stage, [Wrong(error, *tp)], None)
        return False

    def _record(
        self,
        check: str,
        wrong: list[Wrong],
        since: float | None,
        tp: tuple[str, int] | None = None,
    ) -> None:
        now = asyncio.get_running_loop().time()
        elapsed_ms = round(((now if since is None else since) - self._healed_at) * 1000)
        columns: dict[str, Any] = {"check": check, "duration_ms": max(0, elapsed_ms)}
        if not wrong:
            topic, partition = tp or (None, None)
            self._recorder.record(
                Kind.CONVERGENCE, **columns, error=NO_ERROR, topic=topic, partition=partition
            )
        for item in wrong:
            self._recorder.record(
                Kind.CONVERGENCE,
                **columns,
                error=item.error,
                topic=item.topic,
                partition=item.partition,
                node=item.node,
            )


def _writable(partitions: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the partitions to which clients may produce: brokers alone write internal topics."""
    return [tp for tp in partitions if tp[0] not in INTERNAL_TOPICS]
