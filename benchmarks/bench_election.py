"""How long new leaders take: the controller dies, or another broker does, with many partitions on three brokers.

The broker is killed and its ZooKeeper session is ended at once, so that no session time-out is measured. From that
moment until the last surviving broker has applied the UpdateMetadata that carries the last new leader epoch
(``metadata-updated`` is traced directly before it is acknowledged). Every broker leads a third of the partitions.

Required: under 1 s for 1,000 partitions, and 5,000 take at most six times as long.
"""

from __future__ import annotations

import asyncio
import time
from statistics import median
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.cluster import BROKERS, Cluster, cluster, events_after
from nemesis.faults.zookeeper_view import ZooKeeperView
from nemesis.history.events import Kind
from nemesis.interfaces.unsupported import supported

SIZES: Final = (250, 1_000, 2_500, 5_000)
REFERENCE: Final = 1_000
"""The size that the others are compared with."""
ROUNDS: Final = 5
ALLOWED_S: Final = 1.0
ALLOWED_RATIO: Final = 6.0
QUIET_S: Final = 3.0
"""After so long without news the election is over."""
POLL_S: Final = 0.2
DEADLINE_S: Final = 120.0
VICTIMS: Final = ("the controller", "another broker")


def main() -> None:
    """Fail over again and again; print a table, and a plot for ``docs/performance.md``."""
    measured = {size: asyncio.run(measure(size)) for size in SIZES}
    table = Table(
        "who dies",
        "partitions",
        "new leader epochs",
        "seconds, median",
        "range",
        f"times that of {REFERENCE:,}",
        title=f"{BROKERS} brokers, {BROKERS} replicas, {ROUNDS} rounds",
    )
    for victim in VICTIMS:
        reference = _median(measured, REFERENCE, victim)
        for size in SIZES:
            took = [took_s for took_s, _ in measured[size][victim]]
            elected = {count for _, count in measured[size][victim]}
            table.add_row(
                victim,
                f"{size:,}",
                ", ".join(f"{count:,}" for count in sorted(elected)),
                f"{median(took):.2f}",
                f"{min(took):.2f} to {max(took):.2f}",
                f"{median(took) / reference:.1f}",
            )
    console = Console(width=110)
    console.print(table)
    console.print(
        f"Required: under {ALLOWED_S:g} s for {REFERENCE:,}, at most {ALLOWED_RATIO:g} times that for {SIZES[-1]:,}."
    )
    print(plot(measured))


Measured = dict[int, dict[str, list[tuple[float, int]]]]
"""Partitions → who dies → the seconds and the number of new leader epochs of every round."""


def _median(measured: Measured, size: int, victim: str) -> float:
    return median(took_s for took_s, _ in measured[size][victim])


def plot(measured: Measured) -> str:
    """Return the medians as a chart that Markdown viewers draw (Mermaid)."""
    lines = [
        "line [" + ", ".join(f"{_median(measured, size, victim):.2f}" for size in measured) + "]"
        for victim in VICTIMS
    ]
    return "\n".join(
        [
            "```mermaid",
            "xychart-beta",
            f'    title "Seconds until all know the new leaders: {" (1st line), ".join(VICTIMS)} (2nd) dies"',
            "    x-axis partitions [" + ", ".join(map(str, measured)) + "]",
            '    y-axis "seconds"',
            *(f"    {line}" for line in lines),
            "```",
        ]
    )


async def measure(partitions: int) -> dict[str, list[tuple[float, int]]]:
    """Return for each victim the seconds and the number of new leaders of every round."""
    results: dict[str, list[tuple[float, int]]] = {}
    async with (
        cluster(partitions=partitions) as running,
        supported(running.runtime.ensemble).admin() as zookeeper,
    ):
        view = ZooKeeperView(zookeeper)
        for victim in VICTIMS:
            results[victim] = [
                await _fail(running, view, is_controller=victim == VICTIMS[0])
                for _ in range(ROUNDS)
            ]
    return results


async def _fail(running: Cluster, view: ZooKeeperView, *, is_controller: bool) -> tuple[float, int]:
    """Kill one broker, wait until the others have their news, bring it back into every ISR."""
    await running.until_in_sync()
    brokers = (await view.snapshot()).brokers
    controller = await view.controller_now()
    assert controller is not None
    dies = next(b for b in brokers if (b == controller.broker_id) is is_controller)
    traces = {b: running.trace(f"broker-{b}") for b in brokers if b != dies}
    ends = {b: trace.stat().st_size for b, trace in traces.items()}
    await running.runtime.processes.kill(f"broker-{dies}")
    died = time.monotonic_ns()
    await view.zookeeper.end_session(brokers[dies].session)
    news: dict[int, int] = {}
    elected: set[int | None] = set()
    deadline = time.monotonic() + DEADLINE_S
    while len(news) < len(traces) or time.monotonic_ns() < max(news.values()) + QUIET_S * 1e9:
        if time.monotonic() > deadline:
            raise RuntimeError(f"only the brokers {sorted(news)} learnt of leaders")
        await asyncio.sleep(POLL_S)
        for broker, trace in traces.items():
            events, ends[broker] = events_after(trace, ends[broker])
            for event in events:
                if event.kind == Kind.LEADER_ELECTED:
                    elected.add(event.partition)
                elif event.kind == Kind.METADATA_UPDATED and event.count != 0:
                    news[broker] = event.time
    await running.runtime.processes.restart(f"broker-{dies}")
    return (max(news.values()) - died) / 1e9, len(elected)


if __name__ == "__main__":
    main()
