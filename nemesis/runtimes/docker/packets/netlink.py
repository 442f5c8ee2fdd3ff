"""The messages between the kernel's packet queues (NFQUEUE) and a program, as bytes. Pure; standard library only.

Source: ``linux/netfilter/nfnetlink_queue.h``. A message is a header, four bytes that name family and queue, and
attributes; what concerns packets is big-endian, the headers are in the machine's order. Several messages may be sent
in one datagram, and the kernel sends one packet in each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

NETLINK_NETFILTER = 12
SOL_NETLINK = 270
NETLINK_NO_ENOBUFS = 5

ACCEPT = 1
DROP = 0

WHOLE_PACKET = 0xFFFF

MARK = 0x4E454D
"""On packets that the handler sends itself; the rules let them pass."""

_SUBSYSTEM = 3 << 8
_PACKET = _SUBSYSTEM | 0
_VERDICT = _SUBSYSTEM | 1
_CONFIG = _SUBSYSTEM | 2
_ERROR = 2

_REQUEST = 0x1
_ACK = 0x4

_CFG_COMMAND, _CFG_PARAMS, _CFG_MAX_LENGTH, _CFG_MASK, _CFG_FLAGS = 1, 2, 3, 4, 5
_BIND = 1
_COPY_META, _COPY_PACKET = 1, 2
_FLAG_GSO = 4
_ATTRIBUTE_PACKET_HEADER, _ATTRIBUTE_VERDICT, _ATTRIBUTE_PAYLOAD = 1, 2, 10
_AF_INET = 2
_TYPE_MASK = 0x3FFF

_HEADER = struct.Struct("=IHHII")
_GENERIC = struct.Struct(">BBH")
_ATTRIBUTE = struct.Struct("=HH")
_VERDICT_MESSAGE = struct.Struct("=IHHII4sHH4s4s")
_ERROR_NUMBER = struct.Struct("=i")
_PACKET_ID = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet that waits for its verdict. ``payload`` begins with the IP header; empty when it was not asked for."""

    queue: int
    packet_id: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """The kernel's answer to a request: 0, or an error number."""

    sequence: int
    error: int


def bind(queue: int, *, sequence: int) -> bytes:
    """Ask for the packets of a queue."""
    return _config(queue, sequence, (_CFG_COMMAND, struct.pack(">BBH", _BIND, 0, _AF_INET)))


def configure(
    queue: int, *, sequence: int, copied_bytes: int, is_segmented: bool, max_length: int
) -> bytes:
    """Say how much of each packet is wanted, and how many packets may wait.

    ``is_segmented``: as they would be on the wire, with their checksums; otherwise as large as the kernel has
    put them together, which costs far less.
    """
    mode = _COPY_PACKET if copied_bytes else _COPY_META
    return _config(
        queue,
        sequence,
        (_CFG_PARAMS, struct.pack(">IB", copied_bytes, mode)),
        (_CFG_MAX_LENGTH, struct.pack(">I", max_length)),
        (_CFG_MASK, struct.pack(">I", _FLAG_GSO)),
        (_CFG_FLAGS, struct.pack(">I", 0 if is_segmented else _FLAG_GSO)),
    )


def verdict(queue: int, packet_id: int, decision: int) -> bytes:
    """Say what becomes of a packet: ``ACCEPT`` or ``DROP``. It is not answered."""
    return _VERDICT_MESSAGE.pack(
        _VERDICT_MESSAGE.size,
        _VERDICT,
        _REQUEST,
        0,
        0,
        _GENERIC.pack(_AF_INET, 0, queue),
        12,
        _ATTRIBUTE_VERDICT,
        _PACKET_ID.pack(decision),
        _PACKET_ID.pack(packet_id),
    )


def messages(datagram: bytes) -> Iterator[Packet | Answer]:
    """Yield what the kernel has sent."""
    begin = 0
    while begin + _HEADER.size <= len(datagram):
        size, kind, _, sequence, _ = _HEADER.unpack_from(datagram, begin)
        if kind == _PACKET:
            yield _packet(datagram, begin + _HEADER.size, begin + size)
        elif kind == _ERROR:
            (error,) = _ERROR_NUMBER.unpack_from(datagram, begin + _HEADER.size)
            yield Answer(sequence, -error)
        begin += max(_aligned(size), _HEADER.size)


def _packet(datagram: bytes, begin: int, end: int) -> Packet:
    _, _, queue = _GENERIC.unpack_from(datagram, begin)
    packet_id, payload = 0, b""
    begin += _GENERIC.size
    while begin + _ATTRIBUTE.size <= end:
        size, kind = _ATTRIBUTE.unpack_from(datagram, begin)
        if kind & _TYPE_MASK == _ATTRIBUTE_PACKET_HEADER:
            (packet_id,) = _PACKET_ID.unpack_from(datagram, begin + _ATTRIBUTE.size)
        elif kind & _TYPE_MASK == _ATTRIBUTE_PAYLOAD:
            payload = datagram[begin + _ATTRIBUTE.size : begin + size]
        begin += max(_aligned(size), _ATTRIBUTE.size)
    return Packet(queue, packet_id, payload)


def _config(queue: int, sequence: int, *attributes: tuple[int, bytes]) -> bytes:
    body = _GENERIC.pack(_AF_INET, 0, queue)
    for kind, value in attributes:
        size = _ATTRIBUTE.size + len(value)
        body += (_ATTRIBUTE.pack(size, kind) + value).ljust(_aligned(size), b"\0")
    return _HEADER.pack(_HEADER.size + len(body), _CONFIG, _REQUEST | _ACK, sequence, 0) + body


def _aligned(size: int) -> int:
    return (size + 3) & ~3
