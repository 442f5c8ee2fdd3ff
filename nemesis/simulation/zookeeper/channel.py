"""Messages over a stream: a length of four bytes, then MessagePack.

A protocol, not a pair of streams: a message costs one callback and no task. Whoever closes a channel hears nothing of
it any more, neither messages that come late nor its loss.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec

from nemesis.simulation.zookeeper.messages import FromClient, FromMember, FromPeer, Message

_LENGTH_BYTES: Final = 4
_encode = msgspec.msgpack.Encoder().encode
Decode = Callable[[bytes], Any]
Receive = Callable[["Channel", Any], None]
Lost = Callable[["Channel"], None]

FROM_CLIENT: Final[Decode] = msgspec.msgpack.Decoder(FromClient).decode
FROM_MEMBER: Final[Decode] = msgspec.msgpack.Decoder(FromMember).decode
FROM_PEER: Final[Decode] = msgspec.msgpack.Decoder(FromPeer).decode


def encode(message: Message) -> bytes:
    """Return the frame of a message."""
    payload = _encode(message)
    return len(payload).to_bytes(_LENGTH_BYTES) + payload


class Channel(asyncio.Protocol):
    """One end. ``receive`` and ``lost`` may be replaced when somebody else takes the channel over."""

    def __init__(self, decode: Decode, receive: Receive, lost: Lost) -> None:
        self.receive = receive
        self.lost = lost
        self.is_open = True
        self._decode = decode
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self.is_open:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        start, size = 0, len(buffer)
        while self.is_open and size - start >= _LENGTH_BYTES:
            begin = start + _LENGTH_BYTES
            end = begin + int.from_bytes(buffer[start:begin])
            if end > size:
                break
            start = end
            self.receive(self, self._decode(buffer[begin:end]))
        self._buffer = buffer[start:]

    def connection_lost(self, _error: Exception | None) -> None:
        if self.is_open:
            self.is_open = False
            self.lost(self)

    def send(self, message: Message) -> None:
        """Send, unless the channel is gone."""
        self.send_frame(encode(message))

    def send_frame(self, frame: bytes) -> None:
        """Send what ``encode`` returned: one message to many, encoded once."""
        if self.is_open and self._transport is not None:
            self._transport.write(frame)

    def close(self) -> None:
        """End it after what has been sent."""
        self.is_open = False
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End it at once."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()


async def dial(
    address: tuple[str, int],
    source_host: str | None,
    decode: Decode,
    receive: Receive,
    lost: Lost,
) -> Channel:
    """Connect, bound to ``source_host`` if it is given; raises OSError."""
    host, port = address
    loop = asyncio.get_running_loop()
    local = None if source_host is None else (source_host, 0)
    _, channel = await loop.create_connection(
        lambda: Channel(decode, receive, lost), host, port, local_addr=local
    )
    return channel


async def ask(channel: Channel, question: Message) -> Any:
    """Send a question and return the next message; raises OSError when the channel is lost first.

    Until somebody else takes the channel over, what comes after the answer is lost.
    """
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def receive(_channel: Channel, message: Any) -> None:
        if not answer.done():
            answer.set_result(message)

    def lost(_channel: Channel) -> None:
        if not answer.done():
            answer.set_exception(ConnectionResetError("lost before the answer"))

    if not channel.is_open:
        raise ConnectionResetError("lost before the question")
    channel.receive, channel.lost = receive, lost
    channel.send(question)
    return await answer
