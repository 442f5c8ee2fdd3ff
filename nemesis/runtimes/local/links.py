"""The harness's handle on the proxy process: start it, command it, end it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from nemesis.interfaces.errors import RuntimeFailure
from nemesis.interfaces.links import Link, LinkCounters
from nemesis.runtimes.local.addresses import AddressPlan
from nemesis.runtimes.local.node_process import open_log
from nemesis.runtimes.local.proxy import Command, LinkName, Reply, Route
from nemesis.support.errors import MissingRequirement
from nemesis.support.journal import Journal

REPLY_TIMEOUT_S = 10.0
EXIT_TIMEOUT_S = 3.0


class Links:
    """All links of one cluster. Every method raises ``RuntimeFailure`` when the proxy does not answer."""

    def __init__(self, *, log: Path, journal: Journal) -> None:
        self._log = log
        self._journal = journal
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The proxy's process id while it has been started and not stopped."""
        return self._process.pid if self._process is not None else None

    async def start(self, plan: AddressPlan) -> None:
        """Start the proxy and listen for every node; raises ``MissingRequirement`` when an address is taken."""
        with open_log(self._log) as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "nemesis.runtimes.local",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=self._journal.environment,
                start_new_session=True,
            )
        self._journal.add_process("proxy", self._process.pid)
        await self.open(plan, [*plan.brokers, *plan.controllers, *plan.zookeepers])

    async def open(self, plan: AddressPlan, nodes: Iterable[str]) -> None:
        """Listen for these nodes, too, and know all callers of the plan; raises as ``start`` does."""
        routes = [route for node in nodes for route in _routes(plan, node)]
        reply = await self._command(Command(op="open", routes=routes, callers=plan.callers()))
        if reply.error is not None:
            raise MissingRequirement(reply.error)

    async def hold(self, links: Iterable[Link]) -> None:
        """Hold these links; once this returns no further byte crosses them."""
        await self._obey(Command(op="hold", links=_names(links)))

    async def release(self, links: Iterable[Link]) -> None:
        """Let these links go, the held bytes first."""
        await self._obey(Command(op="release", links=_names(links)))

    async def copy(self, links: Iterable[Link], *, after_ms: int) -> None:
        """Let a copy of each of these requests arrive so much later; 0 ends it."""
        await self._obey(Command(op="copy", links=_names(links), after_ms=after_ms))

    async def strand(self, links: Iterable[Link]) -> None:
        """Stop connections at their next such request: those that exist now, and later ones until one has stopped."""
        await self._obey(Command(op="strand", links=_names(links)))

    async def rejoin(self, links: Iterable[Link], *, is_abandoned_lost: bool) -> None:
        """Let the stranded connections go on."""
        command = Command(op="rejoin", links=_names(links), is_abandoned_lost=is_abandoned_lost)
        await self._obey(command)

    async def astray(self, links: Iterable[Link]) -> int:
        """Return how many connections are stranded on these links, and copies under way."""
        return (await self._obey(Command(op="astray", links=_names(links)))).astray

    async def counters(self, links: Iterable[Link]) -> dict[Link, LinkCounters]:
        """Return what each of these links has carried, held and copied so far."""
        wanted = list(links)
        reply = await self._obey(Command(op="counters", links=_names(wanted)))
        return {
            link: LinkCounters(forwarded_bytes=forwarded, held_bytes=held, copies=copies)
            for link, (forwarded, held, copies) in zip(wanted, reply.counters, strict=True)
        }

    async def stop(self) -> None:
        """End the proxy. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), EXIT_TIMEOUT_S)
        except TimeoutError:
            process.kill()
            await process.wait()
        self._journal.remove_process(process.pid)

    async def _obey(self, command: Command) -> Reply:
        reply = await self._command(command)
        if reply.error is not None:
            raise RuntimeFailure(f"the proxy refused {command.op}: {reply.error}")
        return reply

    async def _command(self, command: Command) -> Reply:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise RuntimeFailure("the proxy is not running")
        async with self._turn:
            try:
                async with asyncio.timeout(REPLY_TIMEOUT_S):
                    process.stdin.write(msgspec.json.encode(command) + b"\n")
                    await process.stdin.drain()
                    line = await process.stdout.readline()
            except (OSError, TimeoutError) as error:
                raise RuntimeFailure(f"the proxy does not answer ({error!r})") from None
        if not line:
            raise RuntimeFailure(f"the proxy has died (see {self._log})")
        return msgspec.json.decode(line, type=Reply)


def _routes(plan: AddressPlan, node: str) -> list[Route]:
    return [
        Route(
            node=node,
            host=advertised.host,
            port=advertised.port,
            dial_port=direct.port,
            is_broker=node not in plan.zookeepers,
        )
        for advertised, direct in plan.routes(node)
    ]


def _names(links: Iterable[Link]) -> list[LinkName]:
    return [LinkName(link.source, link.target, link.api_key) for link in links]
