"""What the packet handler carries: a transfer between two network namespaces with a 10 ms delay in force.

Required: 25 MB/s with the delay on both directions between containers. Beside it: without any fault; towards a client,
whose packets are taken away and sent anew; and with packets no larger than the wire allows, as between machines. The
accuracy is that of single datagrams: how much later than told they come.

Needs root, iptables and a kernel with NFQUEUE; no Docker.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles

from rich.console import Console
from rich.table import Table

from benchmarks.namespaces import PORT, SWITCH, Machine, network, transfer
from nemesis.interfaces.links import Link
from nemesis.runtimes.docker.packets import kernel
from nemesis.runtimes.docker.packets.kernel import Feature
from nemesis.runtimes.docker.packets.namespace import NamespaceError
from nemesis.runtimes.docker.packets.packet_rules import PacketRules
from nemesis.runtimes.docker.packets.rules import PacketNode
from nemesis.support.journal import Journal

DELAY_MS = 10
REQUIRED_MB_S = 25
ROUNDS = 5
SIZE = 100_000_000
DATAGRAMS = 300
NAMES = ("broker-1", "broker-2", "client-1")


def main() -> None:
    """Measure, print a table."""
    try:
        asyncio.run(_main())
    except NamespaceError as error:
        print(f"not measured: {error}")


async def _main() -> None:
    features = await kernel.features()
    if missing := {Feature.DROP, Feature.QUEUE} - features:
        print(f"not measured: this kernel lacks {', '.join(sorted(missing))}")
        return
    table = Table("packets", "way", "fault", "MB/s", "range", f"at least {REQUIRED_MB_S}")
    for offloads, name in ((True, "as large as the kernel likes"), (False, "1,500 bytes")):
        async with _ruled(features, offloads=offloads) as (machines, rules):
            for target, is_required in (("broker-2", True), ("client-1", False)):
                for delay_ms in (0, DELAY_MS):
                    await rules.delay(_both_ways("broker-1", target), delay_ms=delay_ms)
                    rates = await _rates(machines["broker-1"], machines[target])
                    verdict = (
                        ("yes" if median(rates) >= REQUIRED_MB_S else "NO") if delay_ms else ""
                    )
                    table.add_row(
                        name,
                        f"to {target}",
                        f"{delay_ms} ms both ways" if delay_ms else "none",
                        f"{median(rates):.0f}",
                        f"{min(rates):.0f} to {max(rates):.0f}",
                        verdict if is_required else "",
                    )
                await rules.delay(_both_ways("broker-1", target), delay_ms=0)
            if offloads:
                accuracy = await _accuracy(machines, rules)
    Console(width=120).print(table)
    print(f"a delay of {DELAY_MS} ms is exceeded by {accuracy}")


async def _rates(sender: Machine, receiver: Machine) -> list[float]:
    return [await transfer(sender, receiver, size=SIZE) for _ in range(ROUNDS)]


async def _accuracy(machines: dict[str, Machine], rules: PacketRules) -> str:
    """Return in words how much later than told single datagrams come."""
    link = frozenset({Link("broker-1", "broker-2")})
    await rules.delay(link, delay_ms=DELAY_MS)
    late_ms = await asyncio.to_thread(_lateness_ms, machines["broker-1"], machines["broker-2"])
    await rules.delay(link, delay_ms=0)
    percentiles = quantiles(late_ms, n=100)
    return (
        f"{percentiles[49]:.2f} ms in the median, {percentiles[98]:.2f} ms at the 99th percentile"
    )


def _lateness_ms(sender: Machine, receiver: Machine) -> list[float]:
    late_ms = []
    with sender.datagrams() as mouth, receiver.datagrams() as ear:
        for _ in range(DATAGRAMS):
            begin = time.monotonic()
            mouth.sendto(b"now", (receiver.host, PORT))
            ear.recv(64)
            late_ms.append((time.monotonic() - begin) * 1000 - DELAY_MS)
    return late_ms


def _both_ways(a: str, b: str) -> frozenset[Link]:
    return frozenset({Link(a, b), Link(b, a)})


@asynccontextmanager
async def _ruled(
    features: frozenset[Feature], *, offloads: bool
) -> AsyncIterator[tuple[dict[str, Machine], PacketRules]]:
    with tempfile.TemporaryDirectory() as directory:
        journal = Journal.create(Path(directory), directory=Path(directory))
        async with network(NAMES, offloads=offloads) as machines:
            nodes = {
                name: PacketNode(machine.host, is_container=not name.startswith("client"))
                for name, machine in machines.items()
            }
            rules = PacketRules(
                nodes,
                pid_of=lambda name: machines[name].pid,
                harness_host=SWITCH,
                features=features,
                journal=journal,
                log=Path(directory) / "packets.log",
            )
            try:
                for name, node in nodes.items():
                    if node.is_container:
                        await rules.reapply(name)
                yield machines, rules
            finally:
                await rules.clear()
        journal.close()


if __name__ == "__main__":
    main()
