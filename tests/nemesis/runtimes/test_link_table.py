"""The scanner finds Kafka's requests in a stream however it is chopped; the table counts and holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nemesis.interfaces.links import Link, LinkCounters
from nemesis.runtimes.local.link_table import LinkTable
from nemesis.support.frame_scanner import FrameScanner

NOTHING: frozenset[int] = frozenset()
FETCH = frozenset({1})


def frame(api_key: int, body: bytes = b"") -> bytes:
    payload = api_key.to_bytes(2) + body
    return len(payload).to_bytes(4) + payload


def scanner() -> tuple[FrameScanner, list[tuple[int, int]]]:
    observed: list[tuple[int, int]] = []
    return FrameScanner(lambda key, size: observed.append((key, size))), observed


def test_a_request_of_a_held_key_stops_at_its_first_byte() -> None:
    scan, observed = scanner()
    data = frame(0, b"produce") + frame(1, b"fetch") + frame(3)
    assert scan.scan(data, FETCH) == (len(frame(0, b"produce")), 1)
    assert observed == [(0, len(frame(0, b"produce")))]


def test_what_was_stopped_passes_once_the_key_is_free() -> None:
    scan, observed = scanner()
    data = frame(1, b"fetch")
    assert scan.scan(data, FETCH) == (0, 1)
    assert scan.scan(data, NOTHING) == (len(data), None)
    assert observed == [(1, len(data))]


def test_bytes_that_cannot_be_kafkas_pass_unread() -> None:
    scan, observed = scanner()
    assert scan.scan(b"\xff\xff\xff\xff\x00\x01", NOTHING) == (6, None)
    assert scan.scan(frame(1), FETCH) == (6, None)
    assert observed == []


@given(
    st.lists(st.tuples(st.integers(0, 5), st.binary(max_size=20)), max_size=8),
    st.lists(st.integers(1, 9), min_size=1),
)
def test_chopping_changes_nothing(requests: list[tuple[int, bytes]], cuts: list[int]) -> None:
    """Whatever the chunks, the same frames are seen, and the stop is at the first held request or in its header."""
    data = b"".join(frame(key, body) for key, body in requests)
    scan, observed = scanner()
    passed, position, step = 0, 0, 0
    stopped_at = None
    while position < len(data) and stopped_at is None:
        chunk = data[position : position + cuts[step % len(cuts)]]
        count, stopped_at = scan.scan(chunk, FETCH)
        passed += count
        position += len(chunk)
        step += 1
    before: list[tuple[int, int]] = []
    for key, body in requests:
        if key == 1:
            break
        before.append((key, len(frame(key, body))))
    assert observed == before
    start = sum(size for _, size in before)
    if len(before) < len(requests):
        assert stopped_at == 1
        assert start <= passed <= start + 5
    else:
        assert stopped_at is None
        assert passed == len(data)


def test_the_table_holds_exactly_what_it_was_told() -> None:
    table = LinkTable()
    table.hold([Link("a", "b"), Link("a", "b", 1), Link("a", "b", 3)])
    table.release([Link("a", "b", 3)])
    assert table.is_held(Link("a", "b"))
    assert not table.is_held(Link("b", "a"))
    assert table.held_keys("a", "b") == {1}
    assert table.held_keys("b", "a") == NOTHING


def test_counters_of_an_unused_link_are_zero() -> None:
    table = LinkTable()
    table.count_forwarded(Link("a", "b"), 7)
    table.count_held(Link("a", "b"), 2)
    assert table.counters(Link("a", "b")) == LinkCounters(forwarded_bytes=7, held_bytes=2)
    assert table.counters(Link("b", "a")) == LinkCounters(forwarded_bytes=0, held_bytes=0)
