"""Whole requests of some API keys, collected from the bytes of one connection so that they can be sent once more."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from nemesis.support.frame_scanner import FRAME_HEADER_SIZE

_LENGTH_SIZE: Final = 4


class FrameCollector:
    """Collects from the first request that it sees from its first byte on."""

    def __init__(self) -> None:
        self._partial = b""

    def collect(self, data: bytes, keys: Collection[int], *, begins_request: bool) -> list[bytes]:
        """Return the requests of these keys that are complete with ``data``, each with its length in front.

        ``begins_request`` states whether the first byte begins a request: a request that began before collecting
        did is skipped.
        """
        if begins_request:
            self._partial = b""
        elif not self._partial:
            return []
        self._partial += data
        requests = []
        while (size := self._first_size()) is not None and len(self._partial) >= size:
            request, self._partial = self._partial[:size], self._partial[size:]
            if api_key_of(request) in keys:
                requests.append(request)
        return requests

    def forget(self) -> None:
        """Drop an incomplete request: the bytes that follow it are not collected."""
        self._partial = b""

    def _first_size(self) -> int | None:
        """Return the size of the first request in bytes, its length included; None while its header is incomplete."""
        if len(self._partial) < FRAME_HEADER_SIZE:
            return None
        return _LENGTH_SIZE + int.from_bytes(self._partial[:_LENGTH_SIZE])


def api_key_of(request: bytes) -> int:
    """Return the API key of a request that has its length in front."""
    return int.from_bytes(request[_LENGTH_SIZE:FRAME_HEADER_SIZE], signed=True)
