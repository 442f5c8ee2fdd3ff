"""FrameProtocol: what it makes of bytes as they come, and when it stops to read."""

from __future__ import annotations

import asyncio
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.network.frames import READ_AHEAD_BYTES, FrameProtocol
from nemesis.reference.protocol.errors import ProtocolError

MAX_BYTES = 4 * READ_AHEAD_BYTES


class Reading(asyncio.Transport):
    """Knows whether it is to read."""

    def __init__(self) -> None:
        super().__init__()
        self._is_reading = True

    def is_reading(self) -> bool:
        return self._is_reading

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True


class Collector(FrameProtocol):
    """Takes frames as they come, as many as it is allowed to."""

    def __init__(self, *, allowed: int = 1_000_000) -> None:
        super().__init__(max_bytes=MAX_BYTES)
        self.frames: list[bytes] = []
        self.allowed = allowed
        self.reading = Reading()
        self.connection_made(self.reading)

    def progressed(self) -> None:
        while len(self.frames) < self.allowed:
            frame = self.reader.next_frame()
            if frame is None:
                return
            self.frames.append(frame)


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=6), st.integers(1, 30))
def test_frames_come_out_as_they_went_in_however_the_bytes_arrive(
    contents: list[bytes], size: int
) -> None:
    collector = Collector()
    stream = b"".join(map(framed, contents))
    for begin in range(0, len(stream), size):
        collector.data_received(stream[begin : begin + size])
    assert collector.frames == contents


@pytest.mark.parametrize("size", [MAX_BYTES + 1, 0, -1])
def test_an_absurd_size_is_an_error_before_anything_of_the_frame_is_there(size: int) -> None:
    collector = Collector()
    with pytest.raises(ProtocolError):
        collector.data_received(struct.pack(">i", size))


def test_what_came_before_the_end_is_still_read() -> None:
    collector = Collector(allowed=0)
    collector.data_received(framed(b"a") + framed(b"b"))
    assert collector.eof_received(), "the transport stays open for answers"
    assert not collector.reader.at_end()
    collector.allowed = 2
    collector.progressed()
    assert collector.frames == [b"a", b"b"]
    assert collector.reader.at_end()
    with pytest.raises(EOFError):
        collector.reader.next_frame()


def test_half_a_frame_before_the_end_is_no_frame() -> None:
    collector = Collector()
    collector.data_received(framed(b"abc")[:-1])
    with pytest.raises(EOFError):
        collector.eof_received()


def test_a_lost_connection_is_told_by_its_error_and_is_no_end() -> None:
    collector = Collector(allowed=0)
    collector.data_received(framed(b"a"))
    collector.connection_lost(ConnectionResetError("gone"))
    assert not collector.reader.at_end()
    with pytest.raises(ConnectionResetError):
        collector.reader.next_frame()


def test_reading_pauses_while_enough_is_there_that_nobody_asked_for() -> None:
    collector = Collector(allowed=1)
    half = bytes(READ_AHEAD_BYTES // 2)
    collector.data_received(framed(half))
    collector.data_received(framed(half))
    assert collector.reading.is_reading()
    collector.data_received(framed(half))
    assert not collector.reading.is_reading()
    collector.allowed = 4
    collector.progressed()
    assert collector.frames == [half] * 3
    assert collector.reading.is_reading()


def test_a_large_frame_that_is_asked_for_is_read_without_a_pause() -> None:
    collector = Collector()
    stream = framed(bytes(MAX_BYTES))
    for begin in range(0, len(stream), 10_000):
        collector.data_received(stream[begin : begin + 10_000])
        assert collector.reading.is_reading()
    assert collector.frames == [bytes(MAX_BYTES)]
