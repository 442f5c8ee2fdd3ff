"""The packet handler, ``python -m nemesis.runtimes.docker.packets.handler SEED``: delays, repeats, reorders packets.

One process serves every container of a run. For each it opens a netlink socket inside that container's network
namespace and goes back to its own; a rule ``-j NFQUEUE`` sends packets here, and each waits in the kernel until its
verdict. Packets to clients are taken away instead, and sent again when they are due. Nothing passes while this process
is dead or stopped, so the harness asks it for a sign of life all the time.

Commands are JSON lines on stdin, each answered by a line on stdout; the end of stdin ends the process. The copy of a
packet is sent by a raw socket inside the namespace, marked so that the rules let it pass.

Standard library only: it must start fast, and carry some ten thousand packets a second beside the cluster.
"""

from __future__ import annotations

import errno
import heapq
import json
import os
import select
import socket
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from random import Random
from typing import Any

from nemesis.runtimes.docker.packets import netlink
from nemesis.runtimes.docker.packets.namespace import entered
from nemesis.runtimes.docker.packets.netlink import Answer, Packet
from nemesis.runtimes.docker.packets.shaping import Decision, Lane, Shape, Tally

MAX_WAITING = 65_535
RECEIVE_BUFFER_BYTES = 2**25
DATAGRAM_BYTES = 2**17
DRAINED_AT_ONCE = 64
VERDICTS_AT_ONCE = 64
ANSWER_TIMEOUT_S = 5.0
SO_RCVBUFFORCE = 33
PRIORITY = -15
"""Before the cluster's processes: a network does not wait for the machines that it connects."""
MAX_SLEEP_S = 0.1

Waiting = tuple[int, int, "Station", Packet, Decision]
"""When due, a number that keeps the order, where, what, and what becomes of it."""


class Station:
    """The queues of one namespace."""

    def __init__(self, namespace: str) -> None:
        """Open the sockets in the namespace at this path; raises OSError."""
        self.lanes: dict[int, Lane] = {}
        self._sequence = 0
        self._answers: dict[int, int] = {}
        with entered(namespace):
            self.socket = socket.socket(
                socket.AF_NETLINK, socket.SOCK_RAW, netlink.NETLINK_NETFILTER
            )
            self._raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.socket.setsockopt(netlink.SOL_NETLINK, netlink.NETLINK_NO_ENOBUFS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
        self.socket.setblocking(False)
        self.socket.bind((0, 0))
        self._raw.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, netlink.MARK)

    def close(self) -> None:
        self.socket.close()
        self._raw.close()

    def open_lane(self, queue: int, lane: Lane) -> list[Packet]:
        """Take the packets of a queue; returns what came meanwhile, of others."""
        came = self._request(netlink.bind(queue, sequence=self._next()))
        self.lanes[queue] = lane
        return came

    def shape(self, queue: int, shape: Shape) -> list[Packet]:
        """Treat the packets of a queue so from now on; returns what came meanwhile, of any."""
        came = self._request(
            netlink.configure(
                queue,
                sequence=self._next(),
                copied_bytes=shape.copied_bytes,
                is_segmented=shape.is_segmented,
                max_length=MAX_WAITING,
            )
        )
        self.lanes[queue].shape = shape
        return came

    def receive(self) -> Iterable[Packet]:
        """Yield the packets that wait in the socket, some at a time."""
        for _ in range(DRAINED_AT_ONCE):
            try:
                datagram = self.socket.recv(DATAGRAM_BYTES)
            except BlockingIOError:
                return
            for message in netlink.messages(datagram):
                if isinstance(message, Answer):
                    self._answers[message.sequence] = message.error
                else:
                    yield message

    def send(self, verdicts: list[bytes]) -> None:
        """Tell the kernel; a packet that is gone with its connection's namespace needs none."""
        for begin in range(0, len(verdicts), VERDICTS_AT_ONCE):
            self.socket.send(b"".join(verdicts[begin : begin + VERDICTS_AT_ONCE]))

    def repeat(self, packet: bytes) -> None:
        """Send a packet to where it was going."""
        try:
            self._raw.sendto(packet, (socket.inet_ntoa(packet[16:20]), 0))
        except OSError as error:
            if error.errno not in (errno.ENOBUFS, errno.EPERM, errno.ENETUNREACH):
                raise

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence

    def _request(self, message: bytes) -> list[Packet]:
        """Send a request and wait for its answer; raises OSError when the kernel refuses."""
        came: list[Packet] = []
        self.socket.send(message)
        poller = select.poll()  # select takes no high descriptors, and a harness may have many
        poller.register(self.socket, select.POLLIN)
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while self._sequence not in self._answers:
            if time.monotonic() > deadline:
                raise OSError(errno.ETIMEDOUT, "the kernel does not answer")
            poller.poll(ANSWER_TIMEOUT_S * 1000)
            came += self.receive()
        if error := self._answers.pop(self._sequence):
            raise OSError(error, os.strerror(error))
        return came


class Handler:
    """All namespaces, and the packets that wait, by the time at which they are due."""

    def __init__(self, seed: str) -> None:
        self._rng = Random(seed)
        self._stations: dict[str, Station] = {}
        self._tallies: dict[str, dict[int, Tally]] = {}
        """By node and queue; they outlast a namespace."""
        self._waiting: list[Waiting] = []
        self._count = 0
        self._input = b""

    def serve(self) -> None:
        """Obey stdin until it ends."""
        os.set_blocking(sys.stdin.fileno(), False)
        while True:
            stations = {station.socket: station for station in self._stations.values()}
            control = sys.stdin.fileno()
            ready, _, _ = select.select([control, *stations], [], [], self._patience_s())
            for station in (stations[source] for source in ready if source in stations):
                self._admit(station, station.receive())
            self._release()
            if control in ready and not self._obey_input():
                return

    def _patience_s(self) -> float:
        if not self._waiting:
            return MAX_SLEEP_S
        wait_ns = self._waiting[0][0] - time.monotonic_ns()
        return min(max(0.0, wait_ns / 1e9), MAX_SLEEP_S)

    def _admit(self, station: Station, packets: Iterable[Packet]) -> None:
        verdicts: list[bytes] = []
        for packet in packets:
            now_ns = time.monotonic_ns()
            decision = station.lanes[packet.queue].decide(packet.payload, now_ns)
            if decision.is_dropped or decision.is_resent:
                verdicts.append(netlink.verdict(packet.queue, packet.packet_id, netlink.DROP))
            if not decision.is_dropped:
                self._count += 1
                heapq.heappush(
                    self._waiting, (decision.due_ns, self._count, station, packet, decision)
                )
        station.send(verdicts)

    def _release(self) -> None:
        now_ns = time.monotonic_ns()
        due: dict[Station, list[bytes]] = {}
        copies: list[tuple[Station, bytes]] = []
        while self._waiting and self._waiting[0][0] <= now_ns:
            _, _, station, packet, decision = heapq.heappop(self._waiting)
            if not decision.is_resent:
                message = netlink.verdict(packet.queue, packet.packet_id, netlink.ACCEPT)
                due.setdefault(station, []).append(message)
            copies += [(station, packet.payload)] * (decision.is_resent + decision.is_duplicated)
        for station, verdicts in due.items():
            if station in self._stations.values():
                station.send(verdicts)
        for station, payload in copies:
            if station in self._stations.values():
                station.repeat(payload)

    def _obey_input(self) -> bool:
        """Carry out the commands that have come; returns False at the end of stdin."""
        chunk = os.read(sys.stdin.fileno(), 2**20)
        self._input += chunk
        *lines, self._input = self._input.split(b"\n")
        for line in lines:
            try:
                reply = self._obey(json.loads(line))
            except OSError as error:
                reply = {"error": str(error)}
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()
        return bool(chunk)

    def _obey(self, command: dict[str, Any]) -> dict[str, Any]:
        match command["op"]:
            case "open":
                self._close(command["node"])
                self._stations[command["node"]] = Station(command["namespace"])
            case "close":
                self._close(command["node"])
            case "shape":
                for queue, shape in command["queues"].items():
                    self._shape(command["node"], int(queue), Shape(**shape))
            case "tallies":
                return {"tallies": {node: _plain(of) for node, of in self._tallies.items()}}
        return {}

    def _shape(self, node: str, queue: int, shape: Shape) -> None:
        station = self._stations[node]
        if queue not in station.lanes:
            tally = self._tallies.setdefault(node, {}).setdefault(queue, Tally())
            self._admit(station, station.open_lane(queue, Lane(self._rng, tally)))
        self._admit(station, station.shape(queue, shape))

    def _close(self, node: str) -> None:
        if (station := self._stations.pop(node, None)) is not None:
            station.close()


def _plain(tallies: dict[int, Tally]) -> dict[int, dict[str, Any]]:
    return {queue: asdict(tally) for queue, tally in tallies.items()}


if __name__ == "__main__":
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    Handler(sys.argv[1]).serve()
