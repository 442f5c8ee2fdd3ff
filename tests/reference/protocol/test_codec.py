"""The codec: what goes in comes out, in every version; hostile frames end in ProtocolError at once."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import importlib
import io
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v1.request import MetadataRequest as MetadataRequestV1
from kio.serial import entity_reader, entity_writer

from nemesis.reference.protocol.codec import (
    SIZE_BYTES,
    decode_request,
    decode_response,
    decode_size,
    encode_request,
    encode_response,
)
from nemesis.reference.protocol.decoding import read_entity
from nemesis.reference.protocol.encoding import write_entity
from nemesis.reference.protocol.errors import ProtocolError, UnsupportedVersionError
from nemesis.reference.protocol.schema import (
    FieldShape,
    build,
    field_defaults,
    field_shapes,
    response_class,
)
from nemesis.reference.protocol.versions import ApiKey, is_offered
from tests.reference.protocol.samples import EVERY_VERSION, sample

MILLISECOND = datetime.timedelta(milliseconds=1)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION)
def test_every_offered_request_survives_the_wire(key: ApiKey, version: int) -> None:
    message = sample(load_request_schema(key, version))

    frame = encode_request(message, correlation_id=5, client_id="me")
    request = decode_request(frame[SIZE_BYTES:], is_offered=is_offered)

    assert decode_size(frame[:SIZE_BYTES], max_bytes=1 << 20) == len(frame) - SIZE_BYTES
    assert (request.api_key, request.api_version, request.correlation_id) == (key, version, 5)
    assert request.message == message
    # The first header, which only ControlledShutdown 0 has, names no client.
    has_client_id = (key, version) != (ApiKey.CONTROLLED_SHUTDOWN, 0)
    assert request.client_id == ("me" if has_client_id else None)


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION)
def test_every_offered_response_survives_the_wire(key: ApiKey, version: int) -> None:
    message = sample(response_class(load_request_schema(key, version)))

    frame = encode_response(message, correlation_id=5)

    assert decode_response(frame[SIZE_BYTES:], type(message)) == (5, message)


def values(shape: FieldShape) -> st.SearchStrategy[Any]:
    """Anything that the field may hold, null included."""
    items: st.SearchStrategy[Any]
    if shape.entity is not None:
        items = entities(shape.entity)
    elif (kafka_type := shape.kafka_type or "").startswith("int"):
        bits = int(kafka_type.removeprefix("int"))
        items = st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    else:
        items = {
            "bool": st.booleans(),
            "string": st.text(max_size=200),
            "bytes": st.binary(max_size=200),
            "records": st.binary(max_size=200),
            "error_code": st.sampled_from(ErrorCode),
            "timedelta_i32": st.integers(-(2**31), 2**31 - 1).map(MILLISECOND.__mul__),
            "timedelta_i64": st.integers(-(2**40), 2**40).map(MILLISECOND.__mul__),
            "datetime_i64": st.integers(0, 2**40).map(lambda ms: EPOCH + ms * MILLISECOND),
            "uuid": st.uuids(allow_nil=False),
        }[kafka_type]
    if shape.is_array:
        items = st.lists(items, max_size=3).map(tuple)
    return st.none() | items if shape.is_nullable else items


def entities(entity: type[Any]) -> st.SearchStrategy[Any]:
    return st.builds(entity, **{shape.name: values(shape) for shape in field_shapes(entity)})


@settings(max_examples=300)
@given(st.sampled_from(EVERY_VERSION), st.booleans(), st.data())
def test_the_decoder_reads_what_kio_reads(
    api: tuple[ApiKey, int], is_request: bool, data: st.DataObject
) -> None:
    request = load_request_schema(*api)
    entity: Any = request if is_request else response_class(request)
    buffer = io.BytesIO()
    entity_writer(entity)(buffer, data.draw(entities(entity)))

    assert read_entity(entity, buffer.getvalue(), 0) == entity_reader(entity)(buffer.getvalue(), 0)


@settings(max_examples=300)
@given(st.sampled_from(EVERY_VERSION), st.booleans(), st.data())
def test_the_encoder_writes_what_kio_writes(
    api: tuple[ApiKey, int], is_request: bool, data: st.DataObject
) -> None:
    request = load_request_schema(*api)
    entity: Any = request if is_request else response_class(request)
    message = data.draw(entities(entity))
    buffer, pieces = io.BytesIO(), list[bytes]()
    entity_writer(entity)(buffer, message)

    write_entity(message, pieces)

    assert b"".join(pieces) == buffer.getvalue()


@pytest.mark.parametrize("name", ["kio.schema.request_header.v1", "kio.schema.request_header.v2"])
@pytest.mark.parametrize("client_id", [None, "", "me", "x" * 300])
def test_the_encoder_writes_the_header_that_kio_writes(name: str, client_id: str | None) -> None:
    entity = importlib.import_module(f"{name}.header").RequestHeader
    message = entity(
        request_api_key=3, request_api_version=12, correlation_id=-1, client_id=client_id
    )
    buffer, pieces = io.BytesIO(), list[bytes]()
    entity_writer(entity)(buffer, message)

    write_entity(message, pieces)

    assert b"".join(pieces) == buffer.getvalue()


@pytest.mark.parametrize("key_and_version", EVERY_VERSION)
def test_every_tagged_field_has_a_default(key_and_version: tuple[ApiKey, int]) -> None:
    request = load_request_schema(*key_and_version)
    for entity in (request, response_class(request)):
        assert_tagged_have_defaults(entity)


def assert_tagged_have_defaults(entity: type[Any]) -> None:
    defaults = field_defaults(entity)
    for shape in field_shapes(entity):
        assert shape.tag is None or shape.name in defaults
        if shape.entity is not None:
            assert_tagged_have_defaults(shape.entity)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"throttle_time": None}, id="null duration"),
        pytest.param({"controller_id": 2**31}, id="number too large"),
        pytest.param({"topics": None}, id="null array"),
        pytest.param({"cluster_id": 7}, id="number for a string"),
    ],
)
def test_what_is_no_value_of_its_field_is_not_written(changes: dict[str, Any]) -> None:
    message = sample(response_class(load_request_schema(3, 12)))

    with pytest.raises((struct.error, TypeError, AttributeError)):
        encode_response(dataclasses.replace(message, **changes), correlation_id=1)


def header(api_key: int, api_version: int) -> bytes:
    return struct.pack(">hhih", api_key, api_version, 1, -1)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\0\3\0\1", id="no header"),
        pytest.param(header(3, 1) + struct.pack(">ih", 2**31 - 1, -2), id="huge array"),
        pytest.param(header(3, 1) + struct.pack(">ih", 1, -2), id="negative string"),
        pytest.param(header(3, 1) + struct.pack(">ih", 1, -1), id="null topic name"),
        pytest.param(header(3, 0) + struct.pack(">i", -1), id="null array where none may be"),
        pytest.param(header(3, 1) + struct.pack(">ih", 1, 1) + b"\xff", id="not UTF-8"),
        pytest.param(header(18, 3) + b"\1\7\x7fab", id="tag longer than the frame"),
        pytest.param(header(18, 3) + b"\0\2a\2b" + b"\xff" * 6, id="endless varint"),
        pytest.param(
            header(1, 12) + b"\0" + struct.pack(">iiibii", 1, 1, 1, 0, 0, 0) + b"\1\1\1\1\0\5\0",
            id="tagged field of another length",
        ),
    ],
)
def test_a_hostile_frame_is_a_protocol_error(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_request(frame, is_offered=is_offered)


def test_a_tagged_field_of_a_newer_version_is_skipped() -> None:
    body = b"\5name\2v" + b"\0"
    plain = decode_request(header(18, 3) + b"\0" + body, is_offered=is_offered)
    tagged = decode_request(header(18, 3) + b"\1\7\3abc" + body, is_offered=is_offered)
    assert tagged.message == plain.message
    assert tagged.message.client_software_name == "name"


@pytest.mark.parametrize("size", [-1, 0, 101])
def test_an_absurd_size_is_a_protocol_error(size: int) -> None:
    with pytest.raises(ProtocolError):
        decode_size(struct.pack(">i", size), max_bytes=100)


def test_an_api_that_is_not_offered_says_so_before_its_body_is_read() -> None:
    with pytest.raises(UnsupportedVersionError) as raised:
        decode_request(struct.pack(">hhi", 18, 99, 4) + b"\xff", is_offered=is_offered)

    assert (raised.value.api_key, raised.value.api_version) == (18, 99)
    assert raised.value.correlation_id == 4


@settings(deadline=2000, max_examples=300)
@given(st.sampled_from(EVERY_VERSION), st.binary(max_size=200))
def test_random_bodies_never_crash_or_hang_the_decoder(
    api: tuple[ApiKey, int], body: bytes
) -> None:
    with contextlib.suppress(ProtocolError):
        decode_request(header(*api) + body, is_offered=is_offered)


@settings(deadline=2000, max_examples=300)
@given(st.sampled_from(EVERY_VERSION), st.data())
def test_damaged_requests_never_crash_or_hang_the_decoder(
    api: tuple[ApiKey, int], data: st.DataObject
) -> None:
    message = sample(load_request_schema(*api))
    frame = bytearray(encode_request(message, correlation_id=1, client_id="me")[SIZE_BYTES:])
    position = data.draw(st.integers(4, len(frame) - 1))
    damage = data.draw(st.binary(min_size=1, max_size=8))
    frame[position : position + len(damage)] = damage
    frame = frame[: data.draw(st.integers(0, len(frame)))]

    try:
        request = decode_request(bytes(frame), is_offered=is_offered)
    except ProtocolError:
        return
    assert dataclasses.is_dataclass(request.message)


def test_build_leaves_out_what_the_version_does_not_have() -> None:
    assert build(MetadataRequestV1, topics=None, allow_auto_topic_creation=False) == (
        MetadataRequestV1(topics=None)
    )
