"""Messages by reference: what goes in comes out once, and frames look like Kafka's from outside."""

from __future__ import annotations

import struct

import pytest
from kio.schema.fetch.v15.response import FetchResponse
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i32Timedelta

from nemesis.reference.protocol.codec import SIZE_BYTES
from nemesis.reference.protocol.errors import ProtocolError, UnsupportedVersionError
from nemesis.reference.protocol.versions import is_offered
from nemesis.simulation.codec import ByReferenceCodec
from nemesis.support.frame_scanner import FrameScanner

REQUEST = MetadataRequest(
    topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
)
RESPONSE = MetadataResponse(
    throttle_time=i32Timedelta.parse(i32Timedelta.resolution * 0),
    brokers=(),
    cluster_id=None,
    controller_id=BrokerId(1),
    topics=(),
)


def test_a_request_arrives_as_it_was_sent() -> None:
    codec = ByReferenceCodec()
    frame = codec.encode_request(REQUEST, correlation_id=7, client_id="me")

    request = codec.decode_request(frame[SIZE_BYTES:], is_offered=is_offered)

    assert (request.api_key, request.api_version, request.correlation_id) == (3, 12, 7)
    assert request.client_id == "me"
    assert request.message is REQUEST


def test_a_response_arrives_as_it_was_sent() -> None:
    codec = ByReferenceCodec()
    frame = codec.encode_response(RESPONSE, correlation_id=7)

    correlation_id, message = codec.decode_response(frame[SIZE_BYTES:], MetadataResponse)

    assert correlation_id == 7
    assert message is RESPONSE


def test_frames_say_their_size_and_api_where_kafkas_do() -> None:
    frame = ByReferenceCodec().encode_request(REQUEST, correlation_id=7, client_id="me")

    assert struct.unpack_from(">ihhi", frame) == (len(frame) - SIZE_BYTES, 3, 12, 7)
    observed: list[tuple[int, int]] = []
    assert FrameScanner(lambda *result: observed.append(result)).scan(frame, frozenset()) == (
        len(frame),
        None,
    )
    assert observed == [(3, len(frame))]


def test_a_message_is_not_kept_once_it_has_arrived() -> None:
    codec = ByReferenceCodec()
    frame = codec.encode_response(RESPONSE, correlation_id=7)[SIZE_BYTES:]
    codec.decode_response(frame, MetadataResponse)

    with pytest.raises(ProtocolError):
        codec.decode_response(frame, MetadataResponse)


def test_a_version_that_is_not_offered_is_refused_with_its_correlation_id() -> None:
    codec = ByReferenceCodec()
    frame = codec.encode_request(REQUEST, correlation_id=7, client_id="me")

    with pytest.raises(UnsupportedVersionError) as raised:
        codec.decode_request(frame[SIZE_BYTES:], is_offered=lambda _key, _version: False)

    assert raised.value.correlation_id == 7


def test_the_answer_to_something_else_is_refused() -> None:
    codec = ByReferenceCodec()
    frame = codec.encode_response(RESPONSE, correlation_id=7)

    with pytest.raises(ProtocolError):
        codec.decode_response(frame[SIZE_BYTES:], FetchResponse)


@pytest.mark.parametrize("frame", [b"", b"\0" * 12, b"\0" * 16, b"\xff" * 300])
def test_bytes_that_it_has_not_made_are_refused(frame: bytes) -> None:
    codec = ByReferenceCodec()

    with pytest.raises(ProtocolError):
        codec.decode_request(frame, is_offered=lambda _key, _version: True)
    with pytest.raises(ProtocolError):
        codec.decode_response(frame, MetadataResponse)
