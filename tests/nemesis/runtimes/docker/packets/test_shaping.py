"""What the packet handler decides, on a clock of the test's."""

from __future__ import annotations

from random import Random

import pytest

from nemesis.runtimes.docker.packets.shaping import (
    IP_HEADER_BYTES,
    NS_PER_MS,
    Decision,
    Lane,
    Shape,
    Tally,
    api_key,
)

PACKET = bytes(IP_HEADER_BYTES)


def lane(shape: Shape, seed: int = 1) -> Lane:
    made = Lane(Random(seed), Tally())
    made.shape = shape
    return made


def decisions(shape: Shape, *, count: int, every_ms: float = 1.0) -> list[tuple[int, Decision]]:
    """When each of these packets came, and what was decided."""
    road = lane(shape)
    times_ns = [round(number * every_ms * NS_PER_MS) for number in range(count)]
    return [(now_ns, road.decide(PACKET, now_ns)) for now_ns in times_ns]


def segment(payload: bytes, *, ip_options: bytes = b"", tcp_options: bytes = b"\x01" * 12) -> bytes:
    """A TCP segment with headers as the kernel sends them."""
    tcp_words = 5 + len(tcp_options) // 4
    tcp = bytes(12) + bytes([tcp_words << 4]) + bytes(7) + tcp_options
    ip_words = 5 + len(ip_options) // 4
    size = ip_words * 4 + len(tcp) + len(payload)
    ip = bytes([0x40 | ip_words, 0]) + size.to_bytes(2) + bytes(16) + ip_options
    return ip + tcp + payload


def request(key: int, version: int = 12, body: bytes = b"body") -> bytes:
    frame = key.to_bytes(2) + version.to_bytes(2) + body
    return len(frame).to_bytes(4) + frame


def test_a_delay_is_the_same_for_all() -> None:
    made = decisions(Shape(delay_ms=10), count=50)
    assert {decision.due_ns - now for now, decision in made} == {10 * NS_PER_MS}


def test_jitter_stays_in_its_bounds_and_keeps_the_order() -> None:
    made = decisions(Shape(delay_ms=20, jitter_ms=15), count=500, every_ms=7.0)
    waits_ms = [(decision.due_ns - now) / NS_PER_MS for now, decision in made]
    assert all(5 <= wait <= 35 for wait in waits_ms)
    assert max(waits_ms) - min(waits_ms) > 20
    dues = [decision.due_ns for _, decision in made]
    assert dues == sorted(dues)


def test_a_reordered_packet_is_overtaken_and_holds_nobody_up() -> None:
    made = decisions(Shape(reordering=0.3, hold_ms=50), count=200)
    held = [decision.due_ns - now for now, decision in made if decision.due_ns > now]
    assert 30 < len(held) < 90
    assert set(held) == {50 * NS_PER_MS}


def test_the_chosen_part_is_doubled() -> None:
    made = decisions(Shape(duplication=0.25), count=1000)
    doubled = sum(decision.is_duplicated for _, decision in made)
    assert 200 < doubled < 300


def test_a_packet_whose_content_is_not_there_is_kept_and_not_doubled() -> None:
    road = lane(Shape(delay_ms=5, duplication=1.0, is_resent=True))
    assert road.decide(b"", 0) == Decision(5 * NS_PER_MS)
    assert road.tally.duplicated == 0
    assert road.decide(PACKET, 0) == Decision(5 * NS_PER_MS, is_resent=True, is_duplicated=True)


def test_nothing_happens_without_a_shape() -> None:
    assert all(decision == Decision(now) for now, decision in decisions(Shape(), count=10))


def test_what_happened_is_tallied() -> None:
    road = lane(Shape(delay_ms=5, duplication=1.0, reordering=1.0, hold_ms=1))
    for now_ns in range(7):
        road.decide(PACKET, now_ns)
    tally = road.tally
    assert (tally.packets, tally.delayed, tally.duplicated, tally.reordered) == (7, 7, 7, 7)


def test_requests_of_a_key_are_dropped_and_others_pass() -> None:
    road = lane(Shape(keys=(1,), dropped_keys=(1,)))
    fetch, produce = segment(request(1)), segment(request(0))
    assert road.decide(fetch, 0).is_dropped
    assert not road.decide(produce, 0).is_dropped
    road.shape = Shape(keys=(1,))
    assert not road.decide(fetch, 0).is_dropped
    assert (road.tally.dropped_bytes, road.tally.passed_bytes) == ({1: len(fetch)}, {1: len(fetch)})


@pytest.mark.parametrize("tcp_options", [b"", bytes(12), bytes(40)])
@pytest.mark.parametrize("ip_options", [b"", bytes(8)])
def test_a_key_is_found_behind_headers_of_any_length(ip_options: bytes, tcp_options: bytes) -> None:
    packet = segment(request(1), ip_options=ip_options, tcp_options=tcp_options)
    assert api_key(packet) == 1
    assert api_key(packet[:64]) in (1, None)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x00\x00\x00",
        b"\xff\xff\xff\xff\x00\x01\x00\x0c",  # no frame is so long
        b"\x00\x00\x10\x00\x00\x01\x7f\x0c",  # no version is so high
    ],
)
def test_what_does_not_begin_a_request_has_no_key(payload: bytes) -> None:
    assert api_key(segment(payload)) is None


def test_only_as_much_of_a_packet_is_wanted_as_is_needed() -> None:
    assert Shape(delay_ms=10).copied_bytes == 0
    assert 0 < Shape(keys=(1,)).copied_bytes < 1500
    for shape in (Shape(duplication=0.1), Shape(delay_ms=1, is_resent=True)):
        assert shape.is_segmented
        assert shape.copied_bytes == 0xFFFF
