"""Requests are collected whole, however the bytes are cut into pieces."""

from __future__ import annotations

import pytest

from nemesis.support.frame_collector import FrameCollector, api_key_of
from nemesis.support.frame_scanner import NO_KEYS, FrameScanner


def frame(api_key: int, body: bytes) -> bytes:
    content = api_key.to_bytes(2) + body
    return len(content).to_bytes(4) + content


STREAM = frame(4, b"first") + frame(1, b"other") + frame(4, b"") + frame(6, b"last")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, len(STREAM)])
def test_requests_of_the_keys_are_collected_from_pieces_of_any_size(size: int) -> None:
    collector, scanner = FrameCollector(), FrameScanner(lambda api_key, frame_size: None)
    collected = []
    for begin in range(0, len(STREAM), size):
        piece = STREAM[begin : begin + size]
        begins_request = scanner.is_between_requests
        scanner.scan(piece, NO_KEYS)
        collected += collector.collect(piece, {4, 6}, begins_request=begins_request)
    assert collected == [frame(4, b"first"), frame(4, b""), frame(6, b"last")]
    assert [api_key_of(request) for request in collected] == [4, 4, 6]


def test_a_request_that_began_before_is_skipped() -> None:
    collector = FrameCollector()
    assert collector.collect(b"the end of a request", {4}, begins_request=False) == []
    assert collector.collect(frame(4, b"x"), {4}, begins_request=True) == [frame(4, b"x")]


def test_what_is_forgotten_is_not_completed_by_later_bytes() -> None:
    collector = FrameCollector()
    request = frame(4, b"half")
    assert collector.collect(request[:7], {4}, begins_request=True) == []
    collector.forget()
    assert collector.collect(request[7:], {4}, begins_request=False) == []
