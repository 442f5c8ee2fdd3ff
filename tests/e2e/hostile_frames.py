"""Frames that no client sends: real ones of every API and version that a broker offers, damaged in many ways.

The same seed gives the same frames. What the controller says (LeaderAndIsr, StopReplica, UpdateMetadata) is damaged
only behind its epochs, which are those of a controller that is over: whoever knows the present one commands the
broker, here as in Kafka without ACLs, and that is no damage.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from kio.index import load_request_schema

from nemesis.reference.protocol.codec import SIZE_BYTES, encode_request
from nemesis.reference.protocol.versions import CONTROL_APIS, OFFERED, ApiKey
from tests.reference.protocol.samples import EVERY_VERSION, sample

EXTREMES: Final = (-(2**31), -2, -1, 0, 1, 255, 2**16, 2**30, 2**31 - 1)
HEADER_START_BYTES: Final = 8
EPOCHS_BYTES: Final = 8
MAX_GARBAGE_BYTES: Final = 300

Damage = Callable[[Random, bytearray, int], None]
"""Changes a frame (without its size) from a position on."""


def hostile_frames(seed: int, records: bytes) -> Iterator[bytes]:
    """Yield frames with their sizes, without end; ``records`` is what a Produce carries where it is not damaged."""
    rng = Random(seed)
    originals = {
        (key, version): _original(key, version, records)[SIZE_BYTES:]
        for key, version in EVERY_VERSION
    }
    keys = list(originals)
    while True:
        key, version = rng.choice(keys)
        frame = bytearray(originals[key, version])
        begin = _begin_of_damage(frame) if key in CONTROL_APIS else 0
        rng.choice(DAMAGES)(rng, frame, begin)
        if key not in CONTROL_APIS and _is_of_the_controller(frame):
            continue
        yield _with_size(rng, bytes(frame))


def _original(key: ApiKey, version: int, records: bytes) -> bytes:
    message = sample(load_request_schema(key, version))
    if key in CONTROL_APIS:
        message = dataclasses.replace(message, controller_epoch=type(message.controller_epoch)(0))
    elif key is ApiKey.PRODUCE:
        message = _with_records(message, records)
    return encode_request(message, correlation_id=5, client_id="hostile")


def _with_records(message: Any, records: bytes) -> Any:
    topics = tuple(
        dataclasses.replace(
            topic,
            partition_data=tuple(
                dataclasses.replace(partition, records=records)
                for partition in topic.partition_data
            ),
        )
        for topic in message.topic_data
    )
    return dataclasses.replace(message, topic_data=topics)


def _begin_of_damage(frame: bytearray) -> int:
    """Behind the header (key, version, correlation id, client id, tags) and the controller's id and epoch."""
    length = int(struct.unpack_from(">h", frame, HEADER_START_BYTES)[0])
    return HEADER_START_BYTES + 2 + max(length, 0) + 1 + EPOCHS_BYTES + 8


def _is_of_the_controller(frame: bytearray) -> bool:
    return len(frame) >= 2 and struct.unpack_from(">h", frame)[0] in CONTROL_APIS


def _with_size(rng: Random, frame: bytes) -> bytes:
    """Mostly the true size; sometimes one that lies."""
    size = len(frame)
    if rng.random() < 0.02:
        size = rng.choice((*EXTREMES, len(frame) + 1, len(frame) + 1_000_000))
    return struct.pack(">i", size) + frame


def _intact(_rng: Random, _frame: bytearray, _begin: int) -> None:
    """As a client would send it."""


def _flip(rng: Random, frame: bytearray, begin: int) -> None:
    for _ in range(rng.randint(1, 4)):
        if begin < len(frame):
            frame[rng.randrange(begin, len(frame))] ^= 1 << rng.randrange(8)


def _overwrite(rng: Random, frame: bytearray, begin: int) -> None:
    """An extreme number, as wide as lengths are."""
    value = rng.choice(EXTREMES)
    if begin + 4 <= len(frame):
        position = rng.randint(begin, len(frame) - 4)
        if rng.random() < 0.5:
            frame[position : position + 4] = struct.pack(">i", value)
        else:
            frame[position : position + 2] = struct.pack(">h", max(-(2**15), min(value, 2**15 - 1)))


def _varint(rng: Random, frame: bytearray, begin: int) -> None:
    """A length of the newer encoding that is far too large, or too long."""
    if begin < len(frame):
        position = rng.randrange(begin, len(frame))
        frame[position : position + 1] = b"\xff" * rng.randint(1, 9) + b"\x7f"


def _cut(rng: Random, frame: bytearray, begin: int) -> None:
    if begin < len(frame):
        del frame[rng.randrange(max(begin, 1), len(frame) + 1) :]


def _extend(rng: Random, frame: bytearray, _begin: int) -> None:
    frame += rng.randbytes(rng.randint(1, MAX_GARBAGE_BYTES))


def _insert(rng: Random, frame: bytearray, begin: int) -> None:
    position = rng.randint(min(begin, len(frame)), len(frame))
    frame[position:position] = rng.randbytes(rng.randint(1, 8))


def _garbage_behind_the_header(rng: Random, frame: bytearray, begin: int) -> None:
    frame[max(begin, HEADER_START_BYTES) :] = rng.randbytes(rng.randint(0, MAX_GARBAGE_BYTES))


def _other_version(rng: Random, frame: bytearray, begin: int) -> None:
    """The same body under another version's number, or under one that is not offered."""
    if begin == 0:
        offered = OFFERED.get(struct.unpack_from(">h", frame)[0])
        highest = 1 if offered is None else offered.highest + 2
        struct.pack_into(">h", frame, 2, rng.randint(-1, highest))


def _garbage(rng: Random, frame: bytearray, begin: int) -> None:
    if begin == 0:
        frame[:] = rng.randbytes(rng.randint(1, MAX_GARBAGE_BYTES))


DAMAGES: Final[tuple[Damage, ...]] = (
    _intact,
    _flip,
    _overwrite,
    _varint,
    _cut,
    _extend,
    _insert,
    _garbage_behind_the_header,
    _other_version,
    _garbage,
)
