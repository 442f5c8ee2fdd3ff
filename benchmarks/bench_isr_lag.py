"""How long a follower that stops to fetch stays in the ISR while the controller can be reached.

Clients write to every partition all the time. Then the Fetch requests of one broker are held, and nothing else: it
lives, has its session, answers the controller. The clock runs from that moment, before which the follower had caught
up some milliseconds ago, until each leader knows its ISR without it (``isr-change-committed``, traced when the
controller's answer has come). Every broker is the one that lags in turn.

A leader looks for those that lag every half of ``replica.lag.time.max.ms``, so one to one and a half times that is what
it takes by itself. Required: at most one second more.
"""

from __future__ import annotations

import asyncio
import time
from itertools import cycle
from random import Random
from statistics import median, quantiles

from rich.console import Console
from rich.table import Table

from benchmarks.cluster import BROKERS, PARTITIONS, TOPIC, Cluster, cluster, events_after
from nemesis.history.events import Kind
from nemesis.interfaces.links import FETCH_API_KEY, Link

LAG_TIME_MAX_MS = 2_000
ROUNDS = 10
SEND_INTERVAL_S = 0.02
WARM_UP_S = 2.0
POLL_S = 0.05
DEADLINE_S = 30.0
REQUEST_TIMEOUT_S = 10.0
_VALUE = b"v" * 1_000


def main() -> None:
    """Stall a follower again and again, print a table."""
    rounds = asyncio.run(measure())
    took = [seconds for round_ in rounds for seconds in round_]
    allowed_s = 1.5 * LAG_TIME_MAX_MS / 1000 + 1
    percentiles = quantiles(took, n=20)
    table = Table(
        "partitions",
        "least",
        "median",
        "95 %",
        "most",
        f"within {allowed_s:g} s",
        title=f"seconds in the ISR, replica.lag.time.max.ms {LAG_TIME_MAX_MS}, {len(rounds)} stalls",
    )
    table.add_row(
        str(len(took)),
        f"{min(took):.2f}",
        f"{median(took):.2f}",
        f"{percentiles[-1]:.2f}",
        f"{max(took):.2f}",
        "yes" if max(took) <= allowed_s else "NO",
    )
    console = Console(width=100)
    console.print(table)
    console.print("each stall's most: " + ", ".join(f"{max(round_):.2f}" for round_ in rounds))


async def measure() -> list[list[float]]:
    """Return for each stall the seconds of every partition that the broker followed."""
    rng = Random(1)
    rounds = []
    properties = {"replica.lag.time.max.ms": LAG_TIME_MAX_MS}
    async with cluster(properties=properties) as running, asyncio.TaskGroup() as group:
        load = group.create_task(_write(running))
        await asyncio.sleep(WARM_UP_S)
        for _, follower in zip(range(ROUNDS), cycle(running.runtime.cluster.brokers), strict=False):
            await running.until_in_sync()
            await asyncio.sleep(rng.uniform(0, LAG_TIME_MAX_MS / 1000))  # whenever a leader looks
            rounds.append(await _stall(running, follower))
        load.cancel()
    return rounds


async def _write(running: Cluster) -> None:
    """Write to every partition; a leader's acknowledgement is enough."""
    client = running.client("producer")
    try:
        while not await client.refresh_metadata():
            pass
        while True:
            for partition in range(PARTITIONS):
                await client.send(
                    TOPIC, partition, [(None, _VALUE)], acks=1, timeout_s=REQUEST_TIMEOUT_S
                )
            await asyncio.sleep(SEND_INTERVAL_S)
    finally:
        client.close()


async def _stall(running: Cluster, follower: str) -> list[float]:
    runtime = running.runtime
    leaders = [broker for broker in runtime.cluster.brokers if broker != follower]
    links = frozenset(Link(follower, leader, api_key=FETCH_API_KEY) for leader in leaders)
    ends = {leader: running.trace(leader).stat().st_size for leader in leaders}
    lagging = int(follower.removeprefix("broker-"))
    await runtime.network.cut(links)
    began = time.monotonic_ns()
    deadline = time.monotonic() + DEADLINE_S
    left: dict[int | None, float] = {}
    followed = PARTITIONS - PARTITIONS // BROKERS
    while len(left) < followed:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{follower} left {len(left)} ISRs of {followed}")
        await asyncio.sleep(POLL_S)
        for leader in leaders:
            events, ends[leader] = events_after(running.trace(leader), ends[leader])
            for event in events:
                if event.kind == Kind.ISR_CHANGE_COMMITTED and lagging not in (event.isr or ()):
                    left.setdefault(event.partition, (event.time - began) / 1e9)
    await runtime.network.restore(links)
    return list(left.values())


if __name__ == "__main__":
    main()
