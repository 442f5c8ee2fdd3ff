"""A container's bandwidth: a token bucket on the device that holds its address, and how fast it really is.

What leaves the container goes through the bucket (``tbf``); what does not fit waits for up to ``MAX_WAIT_MS``, then it
is dropped. What comes in is not slowed down: two nodes that are to be slow both ways need a bucket each.

The rate is measured from inside: datagrams that nobody reads are sent through the device by a socket with a small
buffer, so that sending takes as long as the bucket lets it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time

from nemesis.runtimes.docker.packets.namespace import Namespace, NamespaceError, NamespaceGone

MAX_WAIT_MS = 400
MIN_BURST_BYTES = 16_384
BURST_S = 0.01
DATAGRAM_BYTES = 1_000
SEND_BUFFER_BYTES = 4_608
MEASURE_S = 0.5
MIN_MEASURED_BYTES = 49_152
SEND_TIMEOUT_S = 10.0
DISCARD_PORT = 9


async def limit(namespace: Namespace, host: str, *, rate_kbit_s: int) -> None:
    """Let no more than this leave the node with this address; 0 ends it. ``NamespaceGone``: the node is dead."""
    if not rate_kbit_s:
        await remove(namespace)
        return
    await namespace.run(
        *("tc", "qdisc", "replace", "dev", await _device_of(namespace, host), "root", "tbf"),
        *("rate", f"{rate_kbit_s}kbit", "burst", str(burst_bytes(rate_kbit_s))),
        *("latency", f"{MAX_WAIT_MS}ms"),
    )


async def remove(namespace: Namespace) -> None:
    """Take away every bucket; raises ``NamespaceError`` when one stays. Idempotent."""
    for device in await _limited(namespace):
        await namespace.run("tc", "qdisc", "delete", "dev", device, "root")
    if left := await _limited(namespace):
        raise NamespaceError(f"the bandwidth of {left[0]} stays limited")


async def measure(namespace: Namespace, host: str, *, rate_kbit_s: int) -> int:
    """Return how fast datagrams leave the namespace for ``host``, in kbit/s; 0 when none does.

    ``rate_kbit_s`` is what to expect.
    """
    try:
        return await asyncio.to_thread(_measure, namespace, host, rate_kbit_s)
    except OSError:
        return 0


def burst_bytes(rate_kbit_s: int) -> int:
    """Return how much may leave at once: some timer ticks of the rate, and a few packets."""
    return max(MIN_BURST_BYTES, round(_bytes_per_s(rate_kbit_s) * BURST_S))


def _measure(namespace: Namespace, host: str, rate_kbit_s: int) -> int:
    size = max(MIN_MEASURED_BYTES, round(_bytes_per_s(rate_kbit_s) * MEASURE_S))
    with namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        sender.settimeout(SEND_TIMEOUT_S)
        _send(sender, host, burst_bytes(rate_kbit_s))  # what the bucket has saved up
        begin = time.monotonic()
        _send(sender, host, size)
        took_s = max(time.monotonic() - begin, 1e-6)
    return round(size * 8 / 1000 / took_s)


def _send(sender: socket.socket, host: str, size: int) -> None:
    datagram = bytes(DATAGRAM_BYTES)
    for _ in range(size // DATAGRAM_BYTES + 1):
        sender.sendto(datagram, (host, DISCARD_PORT))


async def _limited(namespace: Namespace) -> list[str]:
    queues = json.loads(await namespace.run("tc", "-json", "qdisc", "show"))
    return [queue["dev"] for queue in queues if queue["kind"] == "tbf" and queue.get("root")]


async def _device_of(namespace: Namespace, host: str) -> str:
    devices = json.loads(await namespace.run("ip", "-json", "-4", "address", "show"))
    for device in devices:
        if any(address.get("local") == host for address in device.get("addr_info", ())):
            return str(device["ifname"])
    raise NamespaceGone(f"no device has the address {host}")


def _bytes_per_s(rate_kbit_s: int) -> float:
    return rate_kbit_s * 1000 / 8
