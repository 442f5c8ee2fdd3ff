"""The kernel's messages, byte for byte as its headers lay them out."""

from __future__ import annotations

import struct
import sys

from nemesis.runtimes.docker.packets import netlink
from nemesis.runtimes.docker.packets.netlink import Answer, Packet


def attribute(kind: int, value: bytes) -> bytes:
    return (struct.pack("=HH", 4 + len(value), kind) + value).ljust(
        (4 + len(value) + 3) & ~3, b"\0"
    )


def message(kind: int, body: bytes, sequence: int = 0) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 0, sequence, 0) + body


def packet(queue: int, packet_id: int, payload: bytes | None) -> bytes:
    body = struct.pack(">BBH", 2, 0, queue)
    body += attribute(1, struct.pack(">IHB", packet_id, 0x0800, 1))
    body += attribute(5, struct.pack(">I", 7))  # the device, of no interest
    if payload is not None:
        body += attribute(10, payload)
    return message(0x300, body)


def test_binding_a_queue() -> None:
    if sys.byteorder == "little":
        assert netlink.bind(0x0102, sequence=9).hex() == (
            "1c000000"
            "0203"
            "0500"
            "09000000"
            "00000000"  # length, type, flags, sequence, port
            "02"
            "00"
            "0102"  # family, version, queue
            "0800"
            "0100"
            "01"
            "00"
            "0002"  # command: bind, for IPv4
        )


def test_a_verdict_names_queue_packet_and_decision() -> None:
    said = netlink.verdict(3, 0x01020304, netlink.ACCEPT)
    assert len(said) == struct.unpack_from("=I", said)[0] == 32
    assert struct.unpack_from("=HH", said, 4) == (0x301, 1)
    assert said[16:20] == bytes([2, 0, 0, 3])
    assert said[20:] == attribute(2, struct.pack(">II", 1, 0x01020304))


def test_whole_packets_are_asked_for_segmented_or_as_they_are() -> None:
    whole = netlink.configure(1, sequence=1, copied_bytes=0xFFFF, is_segmented=True, max_length=10)
    assert attribute(2, struct.pack(">IB", 0xFFFF, 2)) in whole
    assert whole.endswith(attribute(4, struct.pack(">I", 4)) + attribute(5, struct.pack(">I", 0)))
    bare = netlink.configure(1, sequence=1, copied_bytes=0, is_segmented=False, max_length=10)
    assert attribute(2, struct.pack(">IB", 0, 1)) in bare
    assert bare.endswith(attribute(5, struct.pack(">I", 4)))


def test_packets_and_answers_are_read_from_one_datagram() -> None:
    refusal = message(2, struct.pack("=i", -17) + bytes(16), sequence=5)
    datagram = packet(4, 77, b"\x45hello") + refusal + packet(5, 78, None)
    assert list(netlink.messages(datagram)) == [
        Packet(4, 77, b"\x45hello"),
        Answer(5, 17),
        Packet(5, 78, b""),
    ]


def test_half_a_message_ends_the_reading() -> None:
    assert list(netlink.messages(packet(1, 1, b"x")[:10])) == []
